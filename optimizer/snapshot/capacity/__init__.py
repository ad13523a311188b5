"""What of the capacity of nodes the optimizer reads (pure)."""
