"""Every number that tunes the generation of candidates and its bound; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number.
"""

# Candidates of the relaxation

PRICED_CANDIDATES = 6
"""Candidates: those that the relaxation adds to a pool at most."""

# The Lagrangian dual of omitted layouts

DUAL_STEPS = 400
"""Subgradient steps: at most."""

DUAL_PATIENCE = 11
"""Evaluations: without progress, before the step shrinks; see `StepRule.patience`."""

DUAL_STEP_SHRINK = 0.5
"""Factor: of the step size when the bound stops to improve."""

SUBGRADIENT_WEIGHT = 0.6
"""Weight: of the subgradient in the direction; the previous direction has the rest."""

DUAL_TARGET = 0.97
"""Share of the lowest bound: target of a Polyak step; a known better value replaces it."""
