"""The scoring agent of one managed cluster: schedule, fetch, score, publish.

Modules in this folder are the shell that puts the parts together; `failure` and `round_schedule`
are pure. They may import every folder below them; `failure` imports nothing, `round_schedule` only
`dsf.api`.
"""
