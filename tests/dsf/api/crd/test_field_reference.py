"""The page of fields says what the CRDs say."""

from tests.dsf.api.crd.field_reference import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make references"
