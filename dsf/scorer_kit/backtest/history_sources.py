"""Reads the history of a backtest: a recording, a file, or a Prometheus. Shell: files and HTTP."""

import json
from collections.abc import Sequence
from pathlib import Path

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.sources import Sources
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import UntrustedText, listed
from dsf.kube.clock import utc_now
from dsf.scorer_kit.author_call import AuthorCredentials
from dsf.scorer_kit.backtest.history import History, PastSeries, UnusableHistory, from_samples
from dsf.scorer_kit.recordings import load, name_of
from dsf.scorer_kit.series_file import read_series

DEFAULT_STEP = 60
"""Seconds, where neither the scorer nor its author says."""


def recorded(path: Path, query: str, step: int) -> tuple[str, History]:
    """Return a recording's name and the series of a query, or of its only one.

    The step is at least that of the recording. Raises UnusableFile, UnusableHistory.
    """
    recording = load(path)
    found = recording.queries.get(query)
    if found is None and len(recording.queries) == 1:
        (found,) = recording.queries.values()
    if found is None:
        known = listed(recording.queries)
        raise UnusableHistory(
            f"{name_of(path)} has no answer to the scorer's query: set --query to one of: {known}"
        )
    if not found:
        raise UnusableHistory(f"{name_of(path)} has no series")
    length = min(len(one.values) for one in found)
    series = tuple(PastSeries(one.metric, one.values[:length]) for one in found)
    history = History(recording.step, series)
    return name_of(path), history if step <= recording.step else history.coarser(step)


def from_file(path: Path, step: int) -> tuple[str, History]:
    """Return a file's name and its series. Raises UnusableFile, UnusableHistory."""
    return path.name, _history(read_series(path).series, step)


async def from_prometheus(summary: ScorerSummary, url: str, seconds: int) -> History | str:
    """Return the answer of a Prometheus to the query of a summary, or why there is none.

    Raises UnusableHistory.
    """
    credentials = AuthorCredentials(summary.scoring_endpoint, "", "")
    endpoint = summary.source_endpoint or f"{url}{DEFAULT_SOURCE_PATH}"
    changes = {"source_range": seconds, "source_type": "Prometheus", "source_endpoint": endpoint}
    asking = summary.model_copy(update=changes)
    async with http_client() as client:
        sources = Sources(client, credentials, CallLimits(), url)
        found = await sources.fetch(asking, utc_now().timestamp())
    if isinstance(found, Failure):
        return f"{found.stage}: {found.reason}: {found.message}"
    return _history(found.series, summary.source_step)


def _history(series: Sequence[EncodedSeries], step: int) -> History:
    samples = [(json.loads(bytes(one.metric)), _samples(one)) for one in series]
    return from_samples(samples, step)


def _samples(one: EncodedSeries) -> list[tuple[float, float]]:
    """Return the samples of a series. Raises UnusableHistory where one is not a number."""
    read = json.loads(bytes(one.values))
    try:
        return [(float(time), float(value)) for time, value in ([read] if one.instant else read)]
    except (TypeError, ValueError):
        raise UnusableHistory(
            f"a sample of {UntrustedText(bytes(one.metric).decode())} is not a number: write each"
            ' as [unix seconds, "number"]'
        ) from None
