"""Why a workload has no place: irreducible infeasible subsystems of limits, and repairs.

Pure: problems are solved by a function that the caller passes in (`solver_ports`).
May import `explain.margins`, `optimizer.model` and what is below it.
"""
