"""Reconciliation: a reflector watches, a work queue holds names, a controller handles them.
Readers follow single objects by one watch (`followed_view`).
Shell, except `due_times`.
May import the modules of `dsf.runtime`, `dsf.kube` and `dsf.api`.
"""
