"""A table of what was said of layouts, and what became of their Pods."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

SAID = "layout"
"""The property of a test: what was said of a layout, and what its Pods did."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often each pair of both happened."""
    counts = Counter(
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in report.user_properties
        if name == SAID and report.when == "call"
    )
    for said, count in sorted(counts.items()):
        terminalreporter.write_line(f"layouts {said}: {count}")
