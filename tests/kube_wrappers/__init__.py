"""Wrappers around any `Kube` for tests: dry run, read only, call counts, injected faults.

They pass calls on to the `Kube` that they are given, so they can be stacked.
"""
