"""Writes docs/reference/access-by-caller.md; it takes some minutes."""

import asyncio

from tests.access_table.page import PATH, page
from tests.access_table.table import asked

if __name__ == "__main__":
    PATH.write_text(page(asyncio.run(asked())), encoding="utf-8")
