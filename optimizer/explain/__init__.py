"""Explanations of a solution, computed by solving changed problems.

`explanation_process` is the shell: it reads the clock and starts solvers. Everything else is pure,
because solvers are functions that the caller passes in (`case`).
May import `optimizer.solve` and everything below it.
"""
