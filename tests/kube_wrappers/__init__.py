"""Wrappers around any `Kube` for tests: read only, call counts, injected faults.

They pass calls on to the `Kube` that they are given, so they can be stacked.
"""
