"""The MCP server: the optimizer as tools that an assistant can call.

`results` is pure, the rest does I/O. `server` imports what only calls need on the first call.
Imports `optimizer`, `dsf.kube`, `dsf.runtime` and `dsf.cli`.

FastMCP reads its environment variables when it is imported, so they are set here. Its logs go
through this program's logging, only the protocol goes to standard output, nothing is fetched from
the network, and no `.env` file of the working directory is read.
"""

import os

for _name, _value in {
    "FASTMCP_LOG_ENABLED": "false",
    "FASTMCP_ENABLE_RICH_LOGGING": "false",
    "FASTMCP_ENABLE_RICH_TRACEBACKS": "false",
    "FASTMCP_SHOW_SERVER_BANNER": "false",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "FASTMCP_ENV_FILE": os.devnull,
}.items():
    os.environ.setdefault(_name, _value)
