"""What callers may ask of the optimizer: each operation with its rights and handler, once.

Shell: asks `service` in the name of an `AuthorizedOptimizer`. `table` lists those of the HTTP API;
the page's and the chat's data, MCP tools and commands ask the same operations. May import `access`,
the layers below it, and `dsf`.
"""
