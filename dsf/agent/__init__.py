"""The scoring agent of one managed cluster: schedule, fetch, score, publish.

Modules in this folder are the shell that puts the parts together; `failure` is pure.
They may import every folder below them; `failure` imports nothing.
"""
