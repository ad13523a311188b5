"""The page of the REST API says what its routes are."""

from tests.references.rest_api import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make references"
