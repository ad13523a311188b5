"""Whether a series is selected; regular expressions are RE2's, whose time grows with the text."""

from collections.abc import Iterable, Mapping

import re2

from dsf.agent.otlp.points import Labels
from dsf.agent.otlp.window import Wanted
from dsf.api.invalid import Invalid
from dsf.api.series_selector import Matcher, SeriesSelector

MEMORY_BYTES = 1 << 20
"""What a regular expression and its automaton may take."""


def wanted(selectors: Iterable[SeriesSelector]) -> Wanted | Invalid:
    """Return the test of whether any of the selectors takes a series."""
    try:
        tests = [[_test(matcher) for matcher in one.matchers] for one in selectors]
    except re2.error as error:
        return Invalid("InvalidSelector", f"a regular expression of the query: {_why(error)}")

    def takes(labels: Labels) -> bool:
        found = dict(labels)
        return any(all(test(found) for test in selector) for selector in tests)

    return takes


def _test(matcher: Matcher) -> "_Test":
    positive = matcher.operator in {"=", "=~"}
    if matcher.operator in {"=", "!="}:
        return _Test(matcher.label, positive, text=matcher.value)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES
    return _Test(matcher.label, positive, pattern=re2.compile(matcher.value, options))


class _Test:
    """One matcher, ready to be asked."""

    def __init__(
        self, label: str, positive: bool, *, text: str = "", pattern: "re2._Regexp | None" = None
    ) -> None:
        self._label = label
        self._positive = positive
        self._text = text
        self._pattern = pattern

    def __call__(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self._label, "")
        if self._pattern is None:
            return (value == self._text) is self._positive
        return (self._pattern.fullmatch(value) is not None) is self._positive


def _why(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
