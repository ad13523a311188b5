"""The policy watcher: reports the compliance of a managed cluster's policies as a ClusterClaim.

`compliance` is pure; `run` and `cli` do I/O.
Imports `dsf.api`, `dsf.kube`, `dsf.runtime` and `dsf.cli`.
"""
