"""What a fleet is drawn by: GPUs with their layouts, and labels that group clusters. Pure.

Imports `optimizer.domain`, `optimizer.snapshot`, `optimizer.wire` and facts of a fleet.
"""
