"""Families of instances from other generators, and the solvers that the search is compared with.

`generators` is pure; `yardsticks` and `comparison` run solvers and read the CPU time. May import
the optimizer and `benchmarks.optimizer`. OR-tools, a development dependency, is imported here only.
"""
