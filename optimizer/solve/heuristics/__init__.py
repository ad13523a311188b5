"""Decisions without a proof: the current one, the greedy one, and moves that keep the value.

Pure: no solver, no clock. Imports `optimizer.model`, `optimizer.domain`, and of `optimizer.solve`
only `blocks.linking_constraints` and `tuning`.
"""
