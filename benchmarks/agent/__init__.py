"""What the agent costs: time, memory, and writes to the hub."""
