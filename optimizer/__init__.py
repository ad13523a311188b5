"""Decides which policy each cluster enforces and where each workload runs."""
