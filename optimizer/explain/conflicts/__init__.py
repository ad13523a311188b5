"""Conflicts: limits that can keep a workload out, and irreducible infeasible subsystems of them.

Pure: problems are solved by a function that the caller passes in (`solver_ports`).
May import `optimizer.model` and what is below it.
"""
