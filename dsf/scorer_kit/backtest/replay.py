"""Asks a scoring API at each step of a history, as an agent would have. Shell: HTTP."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.wire.http_answer import HttpAnswer, invalid_response
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.api.json_input import json_text
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.scorer_kit.author_call import AuthorCredentials
from dsf.scorer_kit.backtest.history import History, Labels, labels_of
from dsf.scorer_kit.backtest.outcome import Answered, Said

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
