"""Every number that tunes the search of explanations; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
The limits in `composition` are documented ones: they say what is computed, not how.
"""

COUNTED_COMBINATIONS = 64
"""Combinations of a cluster's policies: above so many, all policies count as enforced.

Measured at 0 on `explained`: 1.4 times the calls, 6 times the simplex iterations. No effect at 32
or 128.
"""

COUNTED_SIZES = 12
"""Sizes: so many are counted, the largest first, because small ones rarely prove more.

Measured at 0 on `explained`: 1.4 times the calls, 6 times the simplex iterations. At 6 or 24 the
calls change by less than 2%.
"""

TESTED_CORRECTION_SETS = 40
"""Correction sets of one size: so many are tested; each test can be a solve.

Measured at 10 on `explained`: 3% fewer calls for the same repairs. No effect at 20 or 80.
"""

SIZED_CORRECTION_SETS = 12
"""Correction sets: so many amounts are computed; each can be a solve.

Measured on `explained`: at 24, 17 times the calls; at 1 and 6, 0.7 and 0.9 times. The repairs have
the same size at all three.
"""

TRIED_REPAIRS = 3
"""Repairs: so many, of the fewest changes, are tried; each costs a whole solve.

Measured at 1, 2 and 6 on `explained`: 0.96, 0.98 and 1.07 times the calls for the same repairs.
"""
