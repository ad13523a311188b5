"""Reads the history of a backtest, and asks a scoring API at each of its steps, as an agent would.

Shell: files and HTTP.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.fetch.sources import Sources
from dsf.agent.wire.http_answer import HttpAnswer, invalid_response
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH
from dsf.api.json_input import json_text
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import UntrustedText, listed
from dsf.kube.clock import utc_now
from dsf.scorer_kit.backtest.history import (
    Answered,
    History,
    Labels,
    PastSeries,
    Said,
    UnusableHistory,
    from_samples,
    labels_of,
    named_apart,
)
from dsf.scorer_kit.recordings import load, name_of
from dsf.scorer_kit.scorer_target import AuthorCredentials
from dsf.scorer_kit.series_file import read_series

DEFAULT_STEP = 60
"""Seconds, where neither the scorer nor its author says."""


def recorded(path: Path, query: str, step: int, *, given: bool = False) -> tuple[str, History]:
    """Return a recording's name and the series of a query, or of its only one unless `given`.

    The step is at least that of the recording. Raises UnusableFile, UnusableHistory.
    """
    recording = load(path)
    found = recording.queries.get(query)
    if found is None and len(recording.queries) == 1 and not given:
        (found,) = recording.queries.values()
    if found is None:
        known = listed(recording.queries)
        raise UnusableHistory(
            f"{name_of(path)} has no answer to the query: set --query to one of: {known}"
        )
    if not found:
        raise UnusableHistory(f"{name_of(path)} has no series")
    length = min(len(one.values) for one in found)
    series = named_apart([PastSeries(one.metric, one.values[:length]) for one in found])
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
    if not found.series:
        asked = UntrustedText(summary.source_query)
        raise UnusableHistory(f"{url} has no series of the last {seconds} s for the query {asked}")
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


CLUSTER = "backtest"
"""Stands for the managed cluster that asks."""

_Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _ForecastResult(msgspec.Struct):
    quantiles: list[tuple[_Probability, float]] | None = None


class _ForecastAnswer(msgspec.Struct):
    results: list[_ForecastResult]


_FORECASTS = msgspec.json.Decoder(_ForecastAnswer)


@dataclass(frozen=True, slots=True)
class Replay:
    """The windows of a history that a scorer gets: `window` steps before each of `ends`."""

    history: History
    window: int
    ends: Sequence[int]

    async def run(
        self,
        summary: ScorerSummary,
        credentials: AuthorCredentials,
        progress: Callable[[], None],
    ) -> list[Answered] | Failure:
        """Return the answers, one for each of `ends`, or the first failure.

        Calls `progress` after each answer.
        """
        series = _SeriesIndex(self.history)
        answers = list[Answered]()
        async with http_client() as client:
            api = ScoringApi(CLUSTER, client, credentials, CallLimits())
            for end in self.ends:
                answer = await self._ask(api, summary, end)
                if isinstance(answer, Failure):
                    return answer
                answers.append(series.answered(end, *answer))
                progress()
        return answers

    async def _ask(
        self, api: ScoringApi, summary: ScorerSummary, end: int
    ) -> tuple[list[ScoringResult], list[_ForecastResult]] | Failure:
        deadline = api.deadline(summary)
        sent = self.history.window(max(end - self.window, 0), end)
        answer = await api.call(summary, sent, deadline)
        if isinstance(answer, Failure):
            return answer
        results = await api.results(summary, answer, deadline)
        if isinstance(results, Failure):
            return results
        forecasts = _forecasts(summary.scoring_endpoint, answer)
        return forecasts if isinstance(forecasts, Failure) else (results, forecasts)


def _forecasts(url: str, answer: HttpAnswer) -> list[_ForecastResult] | Failure:
    try:
        return _FORECASTS.decode(json_text(answer.body)).results
    except msgspec.ValidationError as error:
        return invalid_response("scoring", url, answer, "a scoring response", str(error))
    except msgspec.DecodeError:
        # NaN as a literal: the agent accepts it as a score, and there are no quantiles to read.
        return []


class _SeriesIndex:
    """Finds the series of a result: by all labels, or by those that name an entry."""

    def __init__(self, history: History) -> None:
        self._all = {one.labels for one in history.series}
        naming = [(_naming(dict(one.labels)), one.labels) for one in history.series]
        counts = Counter(name for name, _ in naming)
        self._named = {name: labels for name, labels in naming if counts[name] == 1 and name}

    def answered(
        self, end: int, results: Sequence[ScoringResult], forecasts: Sequence[_ForecastResult]
    ) -> Answered:
        """Return the scores by series, those that an agent would publish.

        Scores that are not finite are dropped, and of several for one series the first counts.
        """
        said, strange = dict[Labels, Said](), 0
        for index, result in enumerate(results):
            if not math.isfinite(result.score):
                continue
            labels = self._series(result.metric)
            if labels is None or labels in said:
                strange += 1
                continue
            quantiles = (forecasts[index].quantiles if forecasts else None) or []
            finite = sorted(pair for pair in quantiles if math.isfinite(pair[1]))
            said[labels] = Said(result.score, tuple(finite))
        return Answered(end, said, strange)

    def _series(self, metric: Mapping[str, str]) -> Labels | None:
        labels = labels_of(metric)
        return labels if labels in self._all else self._named.get(_naming(metric))


def _naming(metric: Mapping[str, str]) -> Labels:
    return frozenset(
        (name, metric[name]) for name in PLACEHOLDERS if name != "meta" and name in metric
    )
