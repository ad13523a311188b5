"""What the nodes of the managed cluster have, and what Pods there request (pure)."""
