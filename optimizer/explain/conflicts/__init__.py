"""Conflicts: which limits keep a workload out, and the cheapest repair."""
