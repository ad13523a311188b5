"""The scoring APIs of a scenario, called without HTTP: everything else of a round is the agent's.

An API answers for a cluster with a result for each group of workloads and each device, from the
drawn series.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dsf.agent.failure import Failure
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.http_exchange import CallDeadline
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.wire.http_answer import HttpAnswer, status_failure
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.names import API_VERSION, HUB_NAMESPACE
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.hub.observe.prober import Prober
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult, ProbeTarget
from dsf.kube.port import Object
from optimizer.twin.scenario import Scenario
from optimizer.twin.score_series import ScoreSeries

_HOST = "http://scoring.twin"


@dataclass(frozen=True, slots=True)
class ScoringApis:
    """What all scoring APIs answer at the time that `clock` returns, in seconds."""

    scenario: Scenario
    series: ScoreSeries
    clock: Callable[[], float]

    def is_down(self, score: str) -> bool:
        """Tell whether the API of a score is failing now."""
        failing = self.scenario.outages("ScoringDown", self.clock())
        return any(not one.scores or score in one.scores for one in failing)

    def answer(self, score: str, cluster: str) -> HttpAnswer:
        """Return what the API of a score answers for a cluster."""
        if self.is_down(score):
            return HttpAnswer(503, "application/json", bytearray(b"{}"))
        series = self.series
        place = series.clusters[cluster], slice(None), series.round_of(self.clock())
        results = [
            {"metric": {"app": group, "device": device}, "score": float(values[*place][at])}
            for device, values in series.published(score).items()
            for group, at in series.groups.items()
            if not np.isnan(values[*place][at])
        ]
        body = json.dumps({"results": results}).encode()
        return HttpAnswer(200, "application/json", bytearray(body))


@dataclass(frozen=True, slots=True)
class TwinScoringApi(ScoringApi):
    """The agent's client of scoring APIs, whose calls are answered by the twin."""

    apis: ScoringApis = field(kw_only=True)

    async def call(
        self,
        summary: ScorerSummary,
        series: Sequence[EncodedSeries],  # noqa: ARG002 - scorers of the twin have no source
        deadline: CallDeadline,  # noqa: ARG002 - they answer at once
        reservation: AnswerReservation | None = None,  # noqa: ARG002
    ) -> HttpAnswer | Failure:
        """Return the answer of a scorer's API."""
        return self.apis.answer(summary.score_name, self.cluster)

    async def probe(self, summary: ScorerSummary) -> Failure | None:
        """Ask the health endpoint of a scorer's API; None if it is healthy."""
        answer = self.apis.answer(summary.score_name, self.cluster)
        return None if answer.ok else status_failure("scoring", summary.scoring_endpoint, answer)


class TwinProber(Prober):
    """The hub's prober of scoring APIs, whose calls are answered by the twin."""

    def __init__(self, apis: ScoringApis) -> None:
        self._apis = apis

    async def probe(self, target: ProbeTarget) -> ProbeResult:
        """Ask the health endpoint."""
        await asyncio.sleep(0)
        if self._apis.is_down(target.config_url.split("/")[-2]):
            return ProbeResult(ProbeFailure("BadStatus", f"GET {target.config_url}: answered 503"))
        return ProbeResult()


def dynamic_scorer(score: str, interval: int) -> Object:
    """Return the DynamicScorer of a score by its name."""
    return {
        "apiVersion": API_VERSION,
        "kind": "DynamicScorer",
        "metadata": {"name": score, "namespace": HUB_NAMESPACE},
        "spec": {
            "description": f"Score {score} of the twin",
            "configURL": f"{_HOST}/{score}/config",
            "configSyncMode": "None",
            "location": "External",
            "source": {"type": "None"},
            "scoring": {
                "path": f"/{score}/scoring",
                "params": {"name": score, "interval": interval},
            },
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": "${app};${device}",
        },
    }
