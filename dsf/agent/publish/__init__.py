"""Writes AddOnPlacementScores to the hub, and holds the add-on's Lease.

Shell: the API servers of the hub and of the managed cluster. `placement_score` and
`write_permission` are pure: what is written, whether this agent may, and when it tries again.
May import `dsf.agent.score`, `dsf.kube` and `dsf.runtime`.
"""
