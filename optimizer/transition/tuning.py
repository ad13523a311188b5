"""Every number that tunes the planning of transitions; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
"""

COMPARED_MOVES = 100
"""Blocked moves: so many are compared by the cost of making room, which is a search for each."""

SCHEDULED_CELLS = 20_000_000
"""Rows times stages: up to so many are compared, which takes about a second."""

SHORTEST_PATH_VARIABLES = 12
"""Differing variables: up to so many, the shortest path is searched (2^12 states, no detours)."""

SHORTEST_PATH_STATES = 2_000
"""States: the shortest path search closes so many before it gives up, after about a second."""

KEPT_DETOURS = 200
"""Detours: up to so many, all are kept; every one adds columns to the rows of the moves."""

DETOURS_PER_WORKLOAD = 3
"""Detours: what each workload keeps where there are too many."""
