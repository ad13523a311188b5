"""Every number that tunes the generation of candidates and its bound; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
"""

# Candidates of the relaxation

PRICED_CANDIDATES = 6
"""Candidates: those that the relaxation adds to a pool at most.

Measured at 0 on `layouts`: value -0.4%. At 3 and 12 it changes by at most 0.1%.
"""

CANDIDATES_PER_PRICED_ONE = 8
"""Candidates of `mig.maxCandidates`: for each one of the relaxation.

Measured: at 4 or 16 the value rises by at most 0.2%, which is chance (the gap is 1%).
"""

# The frontier of supplies

COMPARED_POINTS = 1_500
"""Points: up to so many, all pairs are compared, which takes less than 0.1 s.

Measured at 375 and 3000 on `layouts`: value +0.2% and -0.1%, which is chance.
"""

FRONTIER_POINTS = 200
"""Points: so many stay while GPUs are added; more are thinned.

Measured: no effect at 100; at 400 4% more calls for the same value and bound.
"""

THINNED_POINTS = 64
"""Points: what thinning leaves while GPUs are added.

Measured: at 32 or 128 the value changes by 0.1%, which is chance.
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

LEAST_DUAL_STEP = 1e-2
"""Share of the first step size: the descent ends when its step has shrunk to it.

Measured: at 0.005 or 0.02 the bound is the same; the value rises by 0.2%, which is chance.
"""

SUBGRADIENT_WEIGHT = 0.6
"""Weight: of the subgradient in the direction; the previous direction has the rest.

Measured at 1.0 on `layouts`: bound +0.2%. At 0.3 it is the same.
"""

DUAL_TARGET = 0.97
"""Share of the lowest bound: target of a Polyak step; a known better value replaces it.

Measured at 0.985 and 0.94 on `layouts`: bound +0.1% each.
"""

DUAL_CELLS = 40_000_000
"""Coefficients read in all evaluations together: about two seconds.

Measured: no effect at 20000000 or 80000000. It ends descents of larger fleets.
"""
