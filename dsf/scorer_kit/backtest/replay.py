"""Reads the history of a backtest, and asks a scoring API at each of its steps, as an agent would.

Shell: files and HTTP.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import UntrustedText, listed
from dsf.kube.clock import utc_now
from dsf.scorer_kit.backtest.history import (
    Answered,
    History,
    PastSeries,
    Said,
    SeriesIndex,
    UnusableHistory,
    from_samples,
    named_apart,
    past_series,
)
from dsf.scorer_kit.backtest.plan import of_query
from dsf.scorer_kit.prometheus_replay import RecordedSeries
from dsf.scorer_kit.recordings import load, name_of
from dsf.scorer_kit.scorer_target import AuthorCredentials
from dsf.scorer_kit.series_file import Labels, Samples, read_series
from dsf.scorer_kit.table_file import read_table

DEFAULT_STEP = 60
"""Seconds, where neither the scorer nor its author says."""


def recorded(
    path: Path, query: str, step: int, *, given: bool = False, truth_query: str = ""
) -> tuple[str, History]:
    """Return a recording's name and the series of a query, or of its only one unless `given`.

    They have the answer to `truth_query` as their truth if that is recorded. The step is at least
    that of the recording. Raises UnusableFile, UnusableHistory.
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
    answers = recording.queries.get(truth_query)
    length = min(len(one.values) for one in (*found, *(answers or ())))
    series = _recorded(found, length)
    if answers is not None:
        series = of_query(series, _recorded(answers, length))
    return name_of(path), _coarser(History(recording.step, series), step)


def _recorded(found: Sequence[RecordedSeries], length: int) -> tuple[PastSeries, ...]:
    return named_apart([PastSeries(one.metric, one.values[:length]) for one in found])


def from_table(path: Path, step: int, *, measured: bool) -> tuple[str, History]:
    """Return a table's name and its series, with its truth where that is `measured`.

    The step is at least the table's. Raises UnusableFile, UnusableHistory.
    """
    table = read_table(path)
    history = from_samples(table.series, table.step)
    return path.name, _coarser(_with_truth(history, table.truth if measured else None), step)


def from_file(path: Path, step: int) -> tuple[str, History]:
    """Return a file's name and its series. Raises UnusableFile, UnusableHistory."""
    return path.name, from_samples(_series(read_series(path).series), step)


async def from_prometheus(
    summary: ScorerSummary, url: str, seconds: int, truth_query: str
) -> History | str:
    """Return the answers of a Prometheus to the query of a summary and to that of the truth.

    Returns why there are none. An empty `truth_query` is not asked. Raises UnusableHistory.
    """
    credentials = AuthorCredentials(summary.scoring_endpoint, "", "")
    endpoint = summary.source_endpoint or f"{url}{DEFAULT_SOURCE_PATH}"
    changes = {"source_range": seconds, "source_type": "Prometheus", "source_endpoint": endpoint}
    asking, now = summary.model_copy(update=changes), utc_now().timestamp()
    answers = []
    async with http_client() as client:
        sources = Sources(client, credentials, CallLimits(), url)
        for query in filter(None, (summary.source_query, truth_query)):
            found = await sources.fetch(asking.model_copy(update={"source_query": query}), now)
            if isinstance(found, Failure):
                return f"{found.stage}: {found.reason}: {found.message}"
            answers.append(_series(found.series))
    if not answers[0]:
        asked = UntrustedText(summary.source_query)
        raise UnusableHistory(f"{url} has no series of the last {seconds} s for the query {asked}")
    history = from_samples(answers[0], summary.source_step)
    return _with_truth(history, answers[1] if truth_query else None)


def _with_truth(history: History, truth: Samples | None) -> History:
    if truth is None:
        return history
    answers = past_series(truth, history.step, history.start, len(history))
    return replace(history, series=of_query(history.series, answers))


def _coarser(history: History, step: int) -> History:
    return history if step <= history.step else history.coarser(step)


def _series(found: Sequence[EncodedSeries]) -> Samples:
    return [(json.loads(bytes(one.metric)), _samples(one)) for one in found]


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
        self, summary: ScorerSummary, credentials: AuthorCredentials, progress: Callable[[], None]
    ) -> list[Answered] | Failure:
        """Return the answers, one for each of `ends`, or the first failure.

        Calls `progress` after each answer.
        """
        index = SeriesIndex(self.history.series)
        answers = list[Answered]()
        async with http_client() as client:
            api = ScoringApi(CLUSTER, client, credentials, CallLimits())
            for end in self.ends:
                answer = await self._ask(api, summary, end)
                if isinstance(answer, Failure):
                    return answer
                answers.append(_answered(index, end, *answer))
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


def _answered(
    index: SeriesIndex,
    end: int,
    results: Sequence[ScoringResult],
    forecasts: Sequence[_ForecastResult],
) -> Answered:
    """Return the scores by series, those that an agent would publish.

    Scores that are not finite are dropped, and of several for one series the first counts.
    """
    said, strange = dict[Labels, Said](), 0
    for place, result in enumerate(results):
        if not math.isfinite(result.score):
            continue
        labels = index.find(result.metric)
        if labels is None or labels in said:
            strange += 1
            continue
        quantiles = (forecasts[place].quantiles if forecasts else None) or []
        finite = sorted(pair for pair in quantiles if math.isfinite(pair[1]))
        said[labels] = Said(result.score, tuple(finite))
    return Answered(end, said, strange)
