"""The MCP tools, by what they are about: the fleet, plans, rollouts and writes.

Shells: each calls the optimizer with the rights of its caller, and shows what that returns.
Imports `mcp_server.results`, `optimizer` and FastMCP.
"""
