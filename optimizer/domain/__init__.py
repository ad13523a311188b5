"""The optimizer's own values: the fleet, scores, quantities, the solution, settings."""
