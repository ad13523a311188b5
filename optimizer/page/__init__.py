"""The page that people look at, built from src by `make page` into one self-contained HTML file.

May be read by optimizer.api and mcp_server; imports nothing of the product.
"""

from importlib.resources import files

PAGE = files("optimizer.page") / "dist" / "index.html"
"""The built page; it does not exist in a checkout where `make page` never ran."""
