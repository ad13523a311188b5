"""Margins: what the objective loses without an assignment, and with one that it lacks (why not).

Pure: problems are solved by a function that the caller passes in (`solver_ports`).
May import `optimizer.model` and what is below it.
"""
