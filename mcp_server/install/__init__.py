"""`dsf mcp install`: writes this server into the configuration of an MCP client.

`clients`, `config_text` and `one_line` are pure; `cli` reads and writes the file.
Imports `dsf.api` and `dsf.cli`, and nothing of FastMCP: a client may be on another machine.
"""
