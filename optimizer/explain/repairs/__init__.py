"""Repairs: which limits to change, and by how much, so that a workload has a place.

Pure: problems are solved by a function that the caller passes in (`solver_ports`).
May import `explain.conflicts`, `explain.margins`, `optimizer.model` and what is below it.
"""
