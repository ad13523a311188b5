"""Rollouts: their records on the hub, the moves that they make, and the loop that makes them."""
