"""`dsf demo --story`: user stories of the proposal, as scenarios that one shell runs.

All but `tell` is pure: a story is data, and functions that narrate what was measured.
Imports `dsf.sim.demo` and what that imports. A new story is a module, and an entry in
`tell.STORIES`.
"""
