"""What each caller gets from each operation of the optimizer: asked of a served hub, not stated.

`callers` are who asks; `rest_operations` and `mcp_operations` are what is asked; `answers` reads an
answer. `table` asks everything, and `page` is docs/reference/access-by-caller.md.
"""
