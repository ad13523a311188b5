"""Writes the pages of docs/reference that come from the code: `make references`."""

from tests.references.pages import PAGES

for module in PAGES:
    module.PAGE.write_text(module.page(), encoding="utf-8")
