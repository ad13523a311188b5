"""The hub controller: registers scoring APIs and distributes them to the fleet."""
