"""Decides whether a query selects a series; RE2 matches regular expressions in linear time."""

from collections.abc import Iterable, Mapping

import re2

from dsf.agent.otlp.memory.data_points import Labels
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.series_selector import NAME, Matcher, SeriesSelector

MEMORY_BYTES = 1 << 20
"""Memory limit of one regular expression with its automaton."""


class CompiledSelectors:
    """Several selectors; a series is selected if any of them matches."""

    def __init__(self, selectors: Iterable[SeriesSelector]) -> None:
        self._selectors = [[_test(matcher) for matcher in one.matchers] for one in selectors]

    def takes(self, labels: Labels) -> bool:
        """Tell whether any selector selects a series with these labels."""
        found = dict(labels)
        return any(all(test(found) for test in selector) for selector in self._selectors)

    def takes_name(self, name: str) -> bool:
        """Tell whether any selector may select a series with this name."""
        found = {NAME: name}
        return any(
            all(test(found) for test in selector if test.label == NAME)
            for selector in self._selectors
        )


def compile_selectors(selectors: Iterable[SeriesSelector]) -> CompiledSelectors | InvalidInput:
    """Return the selectors, ready to match; InvalidInput if RE2 rejects an expression."""
    try:
        return CompiledSelectors(selectors)
    except re2.error as error:
        return InvalidInput("InvalidSelector", f"a regular expression of the query: {_why(error)}")


def _test(matcher: Matcher) -> "_CompiledMatcher":
    positive = matcher.operator in {"=", "=~"}
    if matcher.operator in {"=", "!="}:
        return _CompiledMatcher(matcher.label, positive, text=matcher.value)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES
    return _CompiledMatcher(matcher.label, positive, pattern=re2.compile(matcher.value, options))


class _CompiledMatcher:
    """One matcher, with its regular expression compiled."""

    def __init__(
        self, label: str, positive: bool, *, text: str = "", pattern: "re2._Regexp | None" = None
    ) -> None:
        self.label = label
        self._positive = positive
        self._text = text
        self._pattern = pattern

    def __call__(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.label, "")
        if self._pattern is None:
            return (value == self._text) is self._positive
        return (self._pattern.fullmatch(value) is not None) is self._positive


def _why(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
