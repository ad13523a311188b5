"""Recorded loads, by name. README.md says where each comes from, and under which licence.

Shell: files. May import the modules of `dsf.scorer_kit` that read series.
"""

from dataclasses import replace
from pathlib import Path

from dsf.api.untrusted_text import UntrustedText
from dsf.scorer_kit.prometheus_replay import ANY_QUERY, RecordedSeries, Recording
from dsf.scorer_kit.series_file import UnusableFile, at_steps, is_table, span, why_not_apart

DAY = 86_400

_FOLDER = Path(__file__).parent

RECORDINGS = {
    "build-machine": _FOLDER / "build-machine.json",
    "aws-load-balancer": _FOLDER / "aws-load-balancer.json",
    "aws-database": _FOLDER / "aws-database.json",
    "gpu-inference": _FOLDER / "gpu-inference.json",
    "shared-machine": _FOLDER / "shared-machine.json",
}
"""The recordings that are shipped."""


def load(path: Path) -> Recording:
    """Return the recording in a file, which may be a table. Raises UnusableFile.

    The series of a table answer any query.
    """
    return _table(path) if is_table(path) else _document(path)


def replayable(path: Path) -> Recording:
    """Return the recording in a file if each of its answers has samples and series that differ.

    Raises UnusableFile.
    """
    recording = load(path)
    for query, series in recording.queries.items():
        of_query = f" for the query {UntrustedText(query)}" if query else ""
        if all(value is None for one in series for value in one.values):
            raise UnusableFile(f"{path} has no {'sample' if series else 'series'}{of_query}")
        if why := why_not_apart(one.metric for one in series):
            raise UnusableFile(f"{path}: {why}")
    return recording


def _document(path: Path) -> Recording:
    try:
        recording = Recording.load(path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = "write {step, queries: [{query, series: [{metric, values}]}]}"
        raise UnusableFile(f"{path} is not a recording: {said}") from error
    if not recording.queries:
        raise UnusableFile(f"{path} has no queries")
    return recording


def _table(path: Path) -> Recording:
    try:
        from dsf.scorer_kit.table_file import read_table  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        needed = "pip install 'dynamic-scoring-framework[kit]'"
        raise UnusableFile(f"{path} is a table, which needs {error.name}: {needed}") from error
    table = read_table(path)
    found = span(table.series, table.step)
    if isinstance(found, str):
        raise UnusableFile(f"{path}: {found}")
    start, length = found
    series = tuple(
        RecordedSeries(dict(metric), tuple(at_steps(samples, table.step, start, length)))
        for metric, samples in table.series
    )
    return Recording(table.step, {ANY_QUERY: series}, round(start))


def of_whole_periods(table: Recording) -> Recording:
    """Return the newest whole weeks of a table, or else days: what repeats keeps its weekdays.

    One that is shorter than a day, or that has no times, is returned as it is.
    """
    step, length = table.step, table.length
    periods = (period for period in (7 * DAY, DAY) if period % step == 0)
    period = next((period for period in periods if length * step >= period), 0)
    if table.start is None or not period:
        return table
    cut = length % (period // step)
    queries = {
        query: tuple(replace(one, values=one.values[cut:]) for one in series)
        for query, series in table.queries.items()
    }
    return Recording(step, queries, table.start + cut * step)


def name_of(path: Path) -> str:
    """Return the name of a recording: its own, or that of its file."""
    return next((name for name, known in RECORDINGS.items() if known == path), path.name)
