"""The search for a decision and its proof: neighbourhoods, column enumeration, closing the gap.

Calls solvers through `pricing`; reads no clock of its own. Imports `pricing` and `blocks`.
"""
