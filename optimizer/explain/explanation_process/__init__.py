"""The shell of explanations: their own process, their time budget, and linear programs in PuLP.

Reads the clock and starts solvers; everything else in `optimizer.explain` is pure.
May import `optimizer.solve` and the rest of `optimizer.explain`.
"""
