"""Answers to questions about a fleet: what there is, what scores say, what is broken.

Pure: facts that were read from the hub in, answers out. Imports `placement_status`, `snapshot`,
`wire` and `domain` of the optimizer; pages, routes and MCP tools show what it returns.
"""
