"""Wrappers around any `Kube`: dry run, read only, call counts, injected faults.
Shell: they pass calls on to the `Kube` that they are given, so they can be stacked.
May import the modules of `dsf.kube`, no adapter.
"""
