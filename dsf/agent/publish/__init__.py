"""Writes AddOnPlacementScores to the hub, and holds the add-on's Lease.

Shell: the API servers of the hub and of the managed cluster. What to write is decided in `plan`.
May import `dsf.agent.score`, `dsf.kube` and `dsf.runtime`.
"""
