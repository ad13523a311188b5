"""Reconciliation: a reflector watches, a controller handles names from its work queue.
Readers follow single objects by one watch (`followed_view`).
Shell.
May import the modules of `dsf.runtime`, `dsf.kube` and `dsf.api`.
"""
