"""The commands of the documents are typed, and print what the documents show.
`blocks` reads a page and its marks; `shell` types; `test_inventory` finds what nobody types.
May import `tests.house`, `tests.command_line` and the product's public doors.
"""
