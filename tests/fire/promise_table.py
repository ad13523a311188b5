"""A pytest plugin that prints one row for each promise: how it is tested, the count, the failures.

The count of a row is measured where possible: the examples that Hypothesis ran, or the property
`count` that the test records (kills). Any other test counts as one case, or as the
`count` of its mark.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pytest

PROMISE = "fire promise"
COUNT = "count"


@dataclass(frozen=True)
class Trial:
    """One test that ran for a promise; `count` cases of it were tried."""

    promise: str
    how: str
    count: int
    failed: bool


def promise_table(trials: Iterable[Trial]) -> str:
    """Return a Markdown table with one row for each promise and way of testing it."""
    rows: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        rows.setdefault((trial.promise, trial.how), []).append(trial)
    lines = ["| promise | how it is tested | count | failures |", "|---|---|---|---|"]
    for (promise, how), tried in rows.items():
        count = sum(trial.count for trial in tried)
        failures = sum(trial.failed for trial in tried)
        lines.append(f"| {promise} | {how} | {count} | {failures} |")
    return "\n".join(lines)


def trial_of(report: pytest.TestReport) -> Trial | None:
    """Return the result of a promise in a report of a call, or of a failed set-up."""
    properties = dict(report.user_properties)
    if PROMISE not in properties or not (report.when == "call" or report.failed):
        return None
    promise, how, marked = properties[PROMISE]
    return Trial(promise, how, int(properties.get(COUNT, marked)), failed=not report.passed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Record the promise of a test and, if Hypothesis runs it, count its examples."""
    mark = item.get_closest_marker("fire")
    if mark is None:
        return (yield)
    item.user_properties.append((PROMISE, fire(*mark.args, **mark.kwargs)))
    function = getattr(item, "obj", None)
    if not getattr(function, "is_hypothesis_test", False):
        return (yield)
    handle = function.hypothesis
    inner, examples = handle.inner_test, 0

    @wraps(inner)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal examples
        examples += 1
        return inner(*args, **kwargs)

    handle.inner_test = counted
    try:
        return (yield)
    finally:
        handle.inner_test = inner
        item.user_properties.append((COUNT, examples))


def fire(promise: str, how: str, count: int = 1) -> tuple[str, str, int]:
    """Return the arguments of the mark; the mark's signature is this function's."""
    return promise, how, count


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table after the run; with several workers, in the process that collects reports."""
    reports = [
        report
        for outcome in ("passed", "failed", "error", "skipped")
        for report in terminalreporter.stats.get(outcome, ())
        if isinstance(report, pytest.TestReport)
    ]
    trials = [trial for report in reports if (trial := trial_of(report))]
    trials.sort(key=lambda trial: (trial.promise, trial.how))
    if trials:
        terminalreporter.section("fire")
        terminalreporter.write_line(promise_table(trials))
