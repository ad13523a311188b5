"""Every number that tunes the search of explanations; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
The limits in `composition` are documented ones: they say what is computed, not how.
"""

COUNTED_COMBINATIONS = 64
"""Combinations of a cluster's policies: above so many, all policies count as enforced."""

COUNTED_SIZES = 12
"""Sizes: so many are counted, the largest first, because small ones rarely prove more."""

TESTED_CORRECTION_SETS = 40
"""Correction sets of one size: so many are tested; each test can be a solve."""

SIZED_CORRECTION_SETS = 12
"""Correction sets: so many amounts are computed; each can be a solve."""

TRIED_REPAIRS = 3
"""Repairs: so many, of the fewest changes, are tried; each costs a whole solve."""
