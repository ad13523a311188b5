"""The page of the command line says what the commands have."""

from tests.references.command_line import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make references"
