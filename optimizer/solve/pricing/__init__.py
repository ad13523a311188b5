"""Lagrangian relaxation and what follows from its prices: bounds, columns, masters, dives, fixing.

Calls solvers through `solver_adapters`; reads no clock of its own. Imports `blocks`, `tuning`,
`time_limit` and `solver_adapters`, never `search`.
"""
