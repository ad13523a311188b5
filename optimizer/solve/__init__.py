"""Solves a placement problem: the process, the choice of a method, and one model of everything.

A shell: processes, clocks and solvers are used here and in `pricing` and `search`; `blocks`,
`greedy`, `move_reduction` and `warm_start` are pure. May import `model`, `domain` and `wire`;
`search` imports `pricing`, `pricing` imports `blocks`.
"""
