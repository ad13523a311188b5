"""The MCP project's own programs against this server: its conformance suite and its Inspector.

`make mcp-conformance` installs Node and both programs below .build, and runs this package.
"""
