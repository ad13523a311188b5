"""What the hub controller costs: writes, lists, time and memory."""
