"""A plan and its explanation in words: one description, which terminals and the MCP server show.

Pure. May import `optimizer.plan`, `optimizer.wire` and `dsf.cli.output`.
"""
