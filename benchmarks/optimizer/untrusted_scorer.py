"""What a scorer that goes mad at noon costs, with minimumTrust and without.

python -m benchmarks.optimizer.untrusted_scorer

A day in virtual time on the embedded hub. The agents of four managed clusters publish two scores of
three apps every five minutes: `forecast`, how fast each app will run in 15 minutes, and `present`,
how fast it runs now. Every 15 minutes the optimizer reads both from the hub and places each app on
a cluster of its own; the forecast counts ten times as much. From noon on the forecasting scorer
calls the fastest clusters the slowest. The regret of a decision is what hindsight's best decision
would have gained: the sum over apps of their speeds 15 minutes later, in points.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

from prometheus_client import CollectorRegistry

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.metrics import AgentMetrics
from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.publish.publisher import Publisher
from dsf.agent.round import Round
from dsf.agent.round_loop import Agent
from dsf.agent.score.forecasts import Instant, IssuedForecasts, TruthValues
from dsf.agent.score.result_rules import AddOnPlacementScoreItem, RoundScores
from dsf.api.crd.score_rules import ForecastRules, ForecastTruth
from dsf.api.scoring.score_conditions import read_trust
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    NAMESPACE,
)
from dsf.kube.port import Object, list_objects
from dsf.sim.virtual_time import VirtualTimeLoop
from optimizer.domain.settings import DEFAULTS
from optimizer.model.formulate import formulate
from optimizer.snapshot.fleet_reader import FleetReader
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.observation import Observation
from optimizer.solve.strategy import solve_problem
from optimizer.wire.request import OptimizeRequest

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600.0
HORIZON = 900
INTERVAL = 300
MINIMUM_TRUST = 0.2
CLUSTERS = ("east", "north", "south", "west")
APPS = ("app01", "app02", "app03")
PERIOD_HOURS = 6.0
"""The clusters are busy one after the other, each once in six hours."""


def speed(cluster: str, app: str, time: float) -> float:
    """Return how fast an app runs on a cluster at a time (seconds since midnight): 15 to 85."""
    turn = time / (PERIOD_HOURS * HOUR) + CLUSTERS.index(cluster) / len(CLUSTERS)
    return 50 + 30 * math.sin(2 * math.pi * turn) + 5 * math.sin(turn + APPS.index(app))


@dataclass(frozen=True, slots=True)
class SimulatedScorers:
    """The scoring APIs and the truth, as the agent of one managed cluster sees them."""

    cluster: str
    mad_from: float

    def now(self) -> datetime:
        """Return the time of day."""
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    async def probe(self, summary: ScorerSummary) -> Failure | None:
        """Return None: every API is healthy."""

    async def perform(self, summary: ScorerSummary) -> Round:
        """Return the scores of now; those of a forecast are of a horizon later."""
        time = asyncio.get_running_loop().time()
        values = self._speeds(time + HORIZON if summary.forecast else time)
        if summary.forecast and time >= self.mad_from:
            values = {app: 100 - value for app, value in values.items()}
        entries = tuple(AddOnPlacementScoreItem(app, int(value)) for app, value in values.items())
        issued = IssuedForecasts(Instant(self.now().timestamp(), time), values)
        reported = RoundReport.success(RoundScores(entries))
        return Round(summary, reported, None, {}, forecasts=issued if summary.forecast else None)

    async def truth(self, summary: ScorerSummary, after: float) -> TruthValues | Failure:  # noqa: ARG002
        """Return how fast the apps ran."""
        time = after - START.timestamp()
        return TruthValues(self._speeds(time - HORIZON), self._speeds(time))

    def _speeds(self, time: float) -> dict[str, float]:
        return {app: speed(self.cluster, app, time) for app in APPS}


@dataclass(frozen=True, slots=True)
class Regrets:
    """The regret of the decisions of one request, in points, before noon and from noon on."""

    before: float = 0.0
    since: float = 0.0


@dataclass(slots=True)
class Day:
    """What a day came to; `trust` is the least of the clusters' trusts by hour."""

    without: Regrets = field(default_factory=Regrets)
    with_trust: Regrets = field(default_factory=Regrets)
    trust: dict[float, float | None] = field(default_factory=dict)


async def simulate(*, begin: float = 0.0, end: float = 24.0, noon: float = 12.0) -> Day:
    """Return what the decisions from `begin` to `end` (hours) lost; run on a virtual clock."""
    hub, day = EmbeddedHub(), Day()
    async with agents(hub, (noon - begin) * HOUR):
        await asyncio.sleep(HORIZON)
        while (time := asyncio.get_running_loop().time()) < (end - begin) * HOUR:
            scores = await list_objects(hub, ADD_ON_PLACEMENT_SCORE)
            mad = time >= (noon - begin) * HOUR
            day.without = added(day.without, regret(scores, request(), time), mad=mad)
            asked = request(minimumTrust=MINIMUM_TRUST)
            day.with_trust = added(day.with_trust, regret(scores, asked, time), mad=mad)
            told = [read_trust(obj) for obj in scores if obj["metadata"]["name"] == "forecast"]
            day.trust[begin + time / HOUR] = min(
                (one for one in told if one is not None), default=None
            )
            await asyncio.sleep(HORIZON)
    return day


@asynccontextmanager
async def agents(hub: EmbeddedHub, mad_from: float) -> AsyncIterator[None]:
    """Run the agent of each managed cluster while the context lasts."""
    form = {"score_dimension_format": "${app}", "source_type": "None", "scoring_interval": INTERVAL}
    rules = ForecastRules(horizon=HORIZON, truth=ForecastTruth(query="speed"))
    summaries = [
        ScorerSummary(name=name, score_name=name, scoring_endpoint="", forecast=declared, **form)
        for name, declared in (("forecast", rules), ("present", None))
    ]
    async with asyncio.TaskGroup() as tasks:
        running = []
        for cluster in CLUSTERS:
            await hub.create(NAMESPACE, {"metadata": {"name": cluster}})
            scorers = SimulatedScorers(cluster, mad_from)
            metrics = AgentMetrics(CollectorRegistry(), asyncio.get_running_loop().time)
            agent = Agent(scorers, Publisher(hub, cluster, scorers.now), metrics, CallLimits())
            agent.configure(dump_summaries(summaries))
            running.append(tasks.create_task(agent.run()))
        yield
        for task in running:
            task.cancel()


def added(so_far: Regrets, lost: float, *, mad: bool) -> Regrets:
    """Return the regrets with those of another decision."""
    if mad:
        return replace(so_far, since=so_far.since + lost)
    return replace(so_far, before=so_far.before + lost)


def regret(scores: list[Object], asked: OptimizeRequest, time: float) -> float:
    """Return what the decision by these scores loses against that by the speeds to come."""
    after = time + HORIZON
    options = (dict(zip(APPS, places, strict=True)) for places in permutations(CLUSTERS, len(APPS)))
    return max(total(one, after) for one in options) - total(decide(scores, asked), after)


def total(places: Mapping[str, str], time: float) -> float:
    """Return the sum of the speeds of the apps on their clusters."""
    return sum(speed(cluster, app, time) for app, cluster in places.items())


def decide(scores: list[Object], asked: OptimizeRequest) -> dict[str, str]:
    """Return the cluster of each app by the optimizer's own reading, model and search."""
    unscored = read_objects(OBSERVED, asked, DEFAULTS)
    reader = FleetReader(unscored, asked, settings=DEFAULTS, now=START)
    reader.add(scores)
    problem = formulate(reader.snapshot().fleet)
    solution = solve_problem(problem, solver="highs", time_limit_seconds=60)
    return {item.workload: item.cluster for item in solution.decision.assignments}


def request(**trust: float) -> OptimizeRequest:
    """Return the request: each cluster has room for one app."""
    forecast = {"addonPlacementScore": "forecast", "scoreDimensionFormat": "${app}", "weight": 10}
    return OptimizeRequest.model_validate(
        {
            "namespace": "default",
            "clusters": [{"name": name, "allocatable": "slot=1"} for name in CLUSTERS],
            "targetWorkloads": [{"name": app} for app in APPS],
            "preference": {**forecast, **trust},
            "objectives": [{"addonPlacementScore": "present", "scoreDimensionFormat": "${app}"}],
        }
    )


def _managed_cluster(name: str) -> Object:
    return {
        "apiVersion": MANAGED_CLUSTER.api_version,
        "kind": MANAGED_CLUSTER.kind,
        "metadata": {"name": name, "labels": {"cluster-name": name}},
        "spec": {"hubAcceptsClient": True},
    }


def _workload(app: str) -> Object:
    labels = {"app": app, "resource-request-kind": "slot", "resource-request-amount": "1"}
    return {
        "apiVersion": MANIFEST_WORK_REPLICA_SET.api_version,
        "kind": MANIFEST_WORK_REPLICA_SET.kind,
        "metadata": {"namespace": "default", "name": app, "labels": labels},
        "spec": {
            "placementRefs": [{"name": f"{app}-placement"}],
            "manifestWorkTemplate": {"workload": {"manifests": []}},
        },
    }


OBSERVED = Observation(
    managed_clusters=tuple(map(_managed_cluster, CLUSTERS)), workloads=tuple(map(_workload, APPS))
)


def main() -> None:
    """Print the regret of a day with and without minimumTrust, and the trust by hour."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        day = runner.run(simulate())
    print(f"minimumTrust {MINIMUM_TRUST:g}; regret in points, hindsight's best is 0")
    print("                      before noon   from noon on")
    for name, found in (("without trust", day.without), ("with minimumTrust", day.with_trust)):
        print(f"{name:20s} {found.before:12.0f} {found.since:14.0f}")
    print(
        f"with trust, the scorer that went mad costs {day.with_trust.since / day.without.since:.0%}"
    )
    for hour in (10.0, 12.0, 12.25, 12.5, 12.75, 13.0, 13.5, 14.0):
        trust = day.trust[hour]
        print(f"  trust at {hour:5.2f} h: {'unknown' if trust is None else format(trust, '.2f')}")


if __name__ == "__main__":
    main()
