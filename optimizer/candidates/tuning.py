"""Every number that tunes the generation of candidates and its bound; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
"""

# Candidates of the relaxation

PRICED_CANDIDATES = 6
"""Candidates: those that the relaxation adds to a pool at most.

Not measured yet.
"""

CANDIDATES_PER_PRICED_ONE = 8
"""Candidates of `mig.maxCandidates` for each one of the relaxation.

Not measured yet.
"""

# The frontier of supplies

COMPARED_POINTS = 1_500
"""Points: up to so many, all pairs are compared, which takes less than 0.1 s.

Not measured yet.
"""

FRONTIER_POINTS = 200
"""Points: so many stay while GPUs are added; more are thinned.

Not measured yet.
"""

THINNED_POINTS = 64
"""Points: what thinning leaves while GPUs are added.

Not measured yet.
"""

# The Lagrangian dual of omitted layouts

DUAL_STEPS = 400
"""Subgradient steps: at most.

Not measured yet.
"""

DUAL_PATIENCE = 11
"""Evaluations: without progress, before the step shrinks; see `StepRule.patience`.

Not measured yet.
"""

DUAL_STEP_SHRINK = 0.5
"""Factor: of the step size when the bound stops to improve.

Not measured yet.
"""

LEAST_DUAL_STEP = 1e-2
"""Share of the first step size: the descent ends when its step has shrunk to it.

Not measured yet.
"""

SUBGRADIENT_WEIGHT = 0.6
"""Weight: of the subgradient in the direction; the previous direction has the rest.

Not measured yet.
"""

DUAL_TARGET = 0.97
"""Share of the lowest bound: target of a Polyak step; a known better value replaces it.

Not measured yet.
"""

DUAL_CELLS = 40_000_000
"""Coefficients read in all evaluations together: about two seconds.

Not measured yet.
"""
