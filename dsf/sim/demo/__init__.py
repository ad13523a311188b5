"""`dsf demo`: the development guide's scenario, end to end, on one machine.

It starts processes, listens on loopback, and prints; only `tables` is pure.
Imports `dsf.sim`, `dsf.kube`, `dsf.api` and the tables of `dsf.cli`.
"""
