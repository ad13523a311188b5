"""Explanations of a solution, computed by solving changed problems.

`explanation_process` and `linear_programs` are the shell: they read the clock and start solvers.
Everything else is pure, because solvers are functions that the caller passes in (`case`).
May import `optimizer.solve` and everything below it.
"""
