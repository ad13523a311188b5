"""Every number that tunes the planning of transitions; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
"""

COMPARED_MOVES = 100
"""Blocked moves: so many are compared by the cost of making room, which is a search for each.

Measured: at 25, 50 and 200 on `moves` 2%, 8% and 2% fewer interruptions, which is chance.
"""

SCHEDULED_CELLS = 20_000_000
"""Rows times stages: up to so many are compared, which takes about a second.

Measured at 0 on `moves`: 3.6 times the stages. No effect at half or double.
"""

SHORTEST_PATH_VARIABLES = 12
"""Differing variables: up to so many, the shortest path is searched (2^12 states, no detours).

Measured at 6 or -1 on `moves`: 1.9% more stages, 0.85 times the calls. No effect at 24.
"""

SHORTEST_PATH_STATES = 2_000
"""States: the shortest path search closes so many before it gives up, after about a second.

Measured at 50 on `moves`: 1.9% more stages. No effect at 1000 or 4000.
"""

KEPT_DETOURS = 200
"""Detours: up to so many, all are kept; every one adds columns to the rows of the moves.

Measured: no effect at 100 or 400. At 0 on `moves` there are 8% fewer interruptions, but no proof
that none could be avoided.
"""

DETOURS_PER_WORKLOAD = 3
"""Detours: what each workload keeps where there are too many.

Measured: no effect at 1, 2 or 6, because few resources have capacity left on `moves`.
"""
