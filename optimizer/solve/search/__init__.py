"""The search for a decision and its proof: neighbourhoods, exchanges, column enumeration.

Calls solvers through `pricing`; reads no clock of its own. Imports `pricing` and `blocks`.
"""
