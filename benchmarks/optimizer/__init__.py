"""What the optimizer costs, and how good its solutions, bounds and explanations are."""
