"""Explanations of a solution, computed by solving changed problems.

`conflicts`, `margins`, `tradeoffs` and this folder are pure; `process` is the shell that calls the
solvers. May import `optimizer.solve` and everything below it.
"""
