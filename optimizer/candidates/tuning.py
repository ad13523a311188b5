"""Every number that tunes the generation of candidates and its bound; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
"""

# Candidates of the relaxation

PRICED_CANDIDATES = 6
"""Candidates: those that the relaxation adds to a pool at most.

Measured at 0 on `layouts`: value -0.4%. At 3 and 12 it changes by at most 0.1%.
"""

# The Lagrangian dual of omitted layouts

DUAL_STEPS = 400
"""Subgradient steps: at most.

Measured at 100 and 200 on `layouts`: bound +0.2% and +0.1%. No effect at 800.
"""

DUAL_PATIENCE = 11
"""Evaluations: without progress, before the step shrinks; see `StepRule.patience`.

Measured at 6 on `layouts`: bound +0.3%. At 22 it is the same.
"""

DUAL_STEP_SHRINK = 0.5
"""Factor: of the step size when the bound stops to improve.

Measured at 0.25 on `layouts`: bound +0.1%. At 0.75 it is the same.
"""

SUBGRADIENT_WEIGHT = 0.6
"""Weight: of the subgradient in the direction; the previous direction has the rest.

Measured at 1.0 on `layouts`: bound +0.2%. At 0.3 it is the same.
"""

DUAL_TARGET = 0.97
"""Share of the lowest bound: target of a Polyak step; a known better value replaces it.

Measured at 0.985 and 0.94 on `layouts`: bound +0.1% each.
"""
