"""The optimizer's own values: fleet, scores, quantities, solution, settings, issues, status.

Pure: frozen values, no I/O. Imports nothing of ours except dsf.api.
"""
