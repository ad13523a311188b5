"""The scoring agent of one managed cluster: schedule, fetch, score, publish.

Modules in this folder are the shell that puts the parts together; they may import every folder
below them. `failure`, `round_events`, `round_schedule` and `scorer_selection` are pure, and import
nothing but each other and `dsf.api`.
"""
