"""Runs one round of a scorer as an agent would, and publishes nothing.

Everything but the series and the token is the agent's own: fetch, call, rules, explanation.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from dsf.agent.metrics import LatestScores
from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.round import Round
from dsf.agent.run import AgentSettings, round_runner
from dsf.agent.score.expiry import validity
from dsf.agent.score.result_rules import assemble, conversion_settings, judge
from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH, SOURCE_LABEL
from dsf.api.scoring.scorer_summary import ScorerSummary, SummarySource
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.clock import utc_now
from dsf.runtime.endpoints import serving
from dsf.scorer_kit.prometheus_replay import PausedReplay, Recording
from dsf.scorer_kit.recordings import RECORDINGS, replayable
from dsf.scorer_kit.registration import suggested_format
from dsf.scorer_kit.scorer_target import AuthorCredentials
from dsf.scorer_kit.series_file import prometheus_answer

_FILE = "http://file"
"""Stands for the server of a file, whose URL replaces it."""

_OBJECTS = "objects"
"""Stands for the query of a source of objects: a file answers any query."""

_NODE = {"node": "node-1"}
"""The label that a recording of one machine lacks."""


@dataclass(frozen=True, slots=True)
class TrialSource:
    """Where the series of a trial come from: one of the three, or none of them.

    A recording stands at its end: nothing before its first sample or after its last is known.
    """

    prometheus_url: str = ""
    data: Path | None = None
    recording: Recording | None = None

    @property
    def as_of(self) -> datetime | None:
        """When the newest sample of a table was."""
        found = self.recording
        return found.moment(found.length - 1) if found else None

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return bool(self.prometheus_url or self.data or self.recording)


def recorded(path: Path) -> Recording:
    """Return a recording, with the label that one of a machine lacks. Raises UnusableFile."""
    found = replayable(path)
    if path not in RECORDINGS.values():
        return found
    queries = {
        query: tuple(replace(one, metric={**_NODE, **one.metric}) for one in series)
        for query, series in found.queries.items()
    }
    return replace(found, queries=queries)


async def try_round(
    summary: ScorerSummary, source: TrialSource, credentials: AuthorCredentials, cluster: str
) -> Round:
    """Run one round, and keep its evidence. Raises UnusableFile."""
    async with _serving(source) as url:
        settings = AgentSettings(cluster, prometheus_url=url)
        as_of = source.as_of
        now = (lambda: as_of) if as_of else utc_now
        async with round_runner(settings, None, now, secrets=credentials) as runner:
            return await replace(runner, explaining=True).perform(_asking(summary, source))


def with_suggested_format(done: Round, cluster: str) -> Round:
    """Return a round in the format that `dsf scorer register` would suggest for its results."""
    metrics = [result.metric for result in done.evidence.results] if done.evidence else []
    suggested = suggested_format(metrics, done.summary.score_dimension_formats)
    if not metrics or done.evidence is None or suggested in {None, DEFAULT_FORMAT}:
        return done
    summary = done.summary.model_copy(update={"score_dimension_format": suggested})
    form = conversion_settings(summary, cluster)
    if isinstance(form, InvalidInput):
        return done
    scores = assemble(judge(done.evidence.results, form), form)
    report, evidence = RoundReport.success(scores), replace(done.evidence, form=form)
    return replace(done, summary=summary, report=report, evidence=evidence)


def metrics(done: Round) -> list[str]:
    """Return the samples of `dynamic_score` that the agent would expose after a round."""
    scores, now = done.report.scores, utc_now()
    latest = LatestScores(now.timestamp)
    if scores is not None:
        valid_until = now + validity(done.summary.scoring_interval)
        latest.replace(done.summary.score_name, scores.samples, valid_until.timestamp())
    registry = CollectorRegistry()
    registry.register(latest)
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if line.startswith("dynamic_score{")]


def _asking(summary: ScorerSummary, source: TrialSource) -> ScorerSummary:
    """Return the summary with a Prometheus to ask, where a file stands for pushed metrics.

    The file answers several sources at paths of their own, because it has the series of all.
    """
    if not source.given:
        return summary
    if summary.sources:
        sources = tuple(_served(one, at_own_path=bool(source.data)) for one in summary.sources)
        return summary.model_copy(update={"sources": sources})
    if summary.source_type not in {"OpenTelemetry", "Kubernetes"}:
        return summary
    query = summary.source_query or _OBJECTS
    endpoint = f"{_FILE}{DEFAULT_SOURCE_PATH}"
    served = {"source_type": "Prometheus", "source_endpoint": endpoint, "source_query": query}
    return summary.model_copy(update=served)


def _served(source: SummarySource, *, at_own_path: bool) -> SummarySource:
    base = f"{_FILE}/{source.name}" if at_own_path else _FILE
    if source.type == "Prometheus" and not at_own_path:
        return source
    served = {"type": "Prometheus", "endpoint": f"{base}{DEFAULT_SOURCE_PATH}"}
    return source.model_copy(update={**served, "query": source.query or _OBJECTS})


@asynccontextmanager
async def _serving(source: TrialSource) -> AsyncIterator[str]:
    """Yield the URL of the Prometheus to ask: the author's, or one on loopback for a file."""
    if source.data:
        async with serving(_answering(prometheus_answer(source.data)), "127.0.0.1:0") as url:
            yield url
    elif source.recording:
        replay = PausedReplay(source.recording)
        replay.show(source.recording.length - 1)
        async with replay.serving() as url:
            yield url
    else:
        yield source.prometheus_url


def _answering(document: dict[str, Any]) -> web.Application:
    """Return an application that answers every query with the series of the source that asks.

    Those are the series without a label that names another source.
    """

    async def answer(request: web.Request) -> web.Response:
        name = request.path.partition(DEFAULT_SOURCE_PATH.rpartition("/")[0])[0].strip("/")
        data = document.get("data")
        if not (name and isinstance(data, dict) and isinstance(data.get("result"), list)):
            return web.json_response(document)
        result = [one for one in data["result"] if _is_of(one, name)]
        return web.json_response({**document, "data": {**data, "result": result}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def _is_of(series: Any, source: str) -> bool:
    metric = series.get("metric") if isinstance(series, dict) else None
    return not isinstance(metric, dict) or metric.get(SOURCE_LABEL, source) == source
