"""Conflicts: the limits that keep a workload out, and the cheapest repairs of them.

Pure: problems are solved by a function that the caller passes in (`explain.case`).
May import `optimizer.model` and what is below it, and `explain.forced_problems`.
"""
