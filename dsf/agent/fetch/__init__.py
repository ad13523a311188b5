"""Calls of sources and scoring APIs: bounded in time and memory, with tokens from Secrets.

Shell: HTTP, the Secrets of the managed cluster, the clock of the event loop.
May import `dsf.agent.wire`, `dsf.agent.score`, `dsf.kube` and `dsf.runtime`.
"""
