"""The page of metrics says what the code registers."""

from tests.monitoring.metrics_reference import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make references"
