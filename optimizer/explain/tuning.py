"""Every number that tunes the search of explanations; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
The limits in `composition` are documented ones: they say what is computed, not how.
"""

COUNTED_COMBINATIONS = 64
"""Combinations of a cluster's policies: above so many, all policies count as enforced.

Not measured yet.
"""

COUNTED_SIZES = 12
"""Sizes: so many are counted, the largest first, because small ones rarely prove more.

Not measured yet.
"""

TESTED_CORRECTION_SETS = 40
"""Correction sets of one size: so many are tested; each test can be a solve.

Not measured yet.
"""

SIZED_CORRECTION_SETS = 12
"""Correction sets: so many amounts are computed; each can be a solve.

Not measured yet.
"""

TRIED_REPAIRS = 3
"""Repairs: so many, of the fewest changes, are tried; each costs a whole solve.

Not measured yet.
"""

RAISED_REPAIRS = 1
"""Repairs: for so many, a raise of the score is sought; each costs up to four solves.

Not measured yet.
"""

MARGIN_RESOURCES = 8
"""Resources: the best other ones of a workload, whose workloads may move in a neighbourhood.

Not measured yet.
"""
