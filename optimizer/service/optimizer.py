"""The optimizer as a service: its doors, over planner, writer, records and rollouts."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from dsf.api.names import score_object_name
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.errors import Forbidden, NotFound
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    NAMESPACE,
    PLACEMENT_PLAN,
    Kind,
)
from dsf.kube.port import Kube, Lister, require_answer
from dsf.runtime.lru_cache import LruCache
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.domain.settings import ANSWER_GAP, DEFAULTS, OptimizerSettings
from optimizer.domain.solution import Solution
from optimizer.follow.overview.findings.workload_findings import nothing_there
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.what_if import PretendedObjects
from optimizer.follow.placement_status.recorded_status import recorded_status
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.follow.record.rollback import no_records, restored_plan
from optimizer.keep.plan_restraint import PlanRestraint
from optimizer.plan.objects_reading import FleetReading
from optimizer.plan.plan import Plan
from optimizer.service.hub.capacity_metrics import CapacityMetrics
from optimizer.service.hub.fleet_matrices import MOST_KEPT, FleetMatrices
from optimizer.service.hub.read_age import measured_age, note_heard
from optimizer.service.hub.score_history import HistoryQuestion, PrometheusHistory, ScoreHistory
from optimizer.service.hub.score_pages import score_names, score_pages
from optimizer.service.hub.scorer_history import ScorerHistories, scorer_histories
from optimizer.service.hub.watched_hub import MAX_AGE_SECONDS, WatchedHub
from optimizer.service.landing_watch import LandingWatch
from optimizer.service.metrics import OptimizerMetrics
from optimizer.service.namespace_lease import LEASE_SECONDS, NamespaceWriters
from optimizer.service.observe import list_all, observe, retry_when_gone
from optimizer.service.observe_fleet import OPTIONAL_KINDS, observe_fleet
from optimizer.service.plan_records import PlanRecords
from optimizer.service.plan_writer import PlanWriter
from optimizer.service.planner import Planner, no_solved_problems, pretended_hub
from optimizer.service.record_keys import RecordKeys
from optimizer.service.rollouts.rollout_controller import RolloutController
from optimizer.snapshot.object_readers import is_workload, name_of
from optimizer.snapshot.scores.score_index import score_object
from optimizer.snapshot.scores.score_meanings import score_list
from optimizer.solve.solver_process import Solve, ignored, solve
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import ProblemKind, RequestProblem
from optimizer.wire.result import ScoreObject

if TYPE_CHECKING:
    from optimizer.follow.optimization.subject import WaitingPlan


class Optimizer:
    """Plans placements for the workloads of one hub, and applies the plans.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    `registry` has its metrics; by default one of its own. `health` is asked whether the hub can be
    read, and `watching` watches it: clients with connections of their own, so that they answer
    while others are busy. `identity` names this process in its Leases; see NamespaceWriters.
    `solve` solves its problems.
    """

    def __init__(
        self,
        kube: Kube,
        settings: OptimizerSettings = DEFAULTS,
        *,
        now: Callable[[], datetime],
        identity: str = "",
        lease_seconds: float = LEASE_SECONDS,
        registry: CollectorRegistry | None = None,
        health: Kube | None = None,
        solve: Solve = solve,
        watching: Kube | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self.metrics = OptimizerMetrics(self.registry)
        self.kube = kube
        self.prometheus_url = settings.prometheus_url
        self._health = health or kube
        self.settings = settings
        self.now = now
        self._solve = solve
        self._solving = 0
        self.hub = WatchedHub(
            kube,
            watching=watching,
            namespaces=settings.rollout_namespaces,
            score_entries=settings.watched_score_entries,
            registry=self.registry,
        )
        self.registry.register(CapacityMetrics(self.hub, now))
        noted = self.hub.noting(kube)
        writers = NamespaceWriters(kube, identity=identity, lease_seconds=lease_seconds)
        self.identity, self.lease_seconds = writers.identity, lease_seconds
        keys = RecordKeys(kube, settings.record_key_secret)
        self._records = PlanRecords(noted, keys, now=now, limit=settings.plan_history_limit)
        self.rollouts = RolloutController(
            noted,
            settings,
            self._records,
            keys=keys,
            now=now,
            writers=writers,
            metrics=self.metrics,
        )
        self.landings = LandingWatch(
            noted,
            self.hub,
            settings,
            keys=keys,
            now=now,
            plans=self.rollouts.records.plans,
            metrics=self.metrics,
        )
        self.waiting: dict[tuple[str, str], WaitingPlan] = {}
        self._solved = no_solved_problems()
        self._history = PrometheusHistory(settings.prometheus_url)
        writer = PlanWriter(
            noted, settings, self._records, self.rollouts, now, writers, self.metrics
        )
        self.apply, self.reset, self.plan_reset = writer.apply, writer.reset, writer.plan_reset
        self.plans = self._records.read
        self._known_records = LruCache[str, tuple[int, tuple[RecordedPlan, ...] | Issue]](MOST_KEPT)
        self.matrices = FleetMatrices(
            self.hub, lambda namespace, listed: self.fleet(namespace, listed=listed, columns=True)
        )

    async def ready(self) -> None:
        """Raise KubeError where the hub can't be read."""
        await require_answer(self._health, MANAGED_CLUSTER)

    async def scores(
        self, *, namespace: str | None = None, name: str | None = None, described: bool = True
    ) -> tuple[ScoreObject, ...] | RequestProblem:
        """Return the AddOnPlacementScores of all clusters, or of one namespace or name.

        More entries than `max_listed` are refused. `described` adds what the DynamicScorers state:
        description and dimension format.
        """
        names = () if name is None else (score_object_name(name),)
        if names == ("",):
            return ()
        read = await retry_when_gone(lambda: self._scores(names, namespace))
        if isinstance(read, RequestProblem):
            return read
        return score_list(read, await list_all(self.hub, DYNAMIC_SCORER) if described else ())

    async def score_names(self) -> tuple[ScoreObject, ...]:
        """Return the AddOnPlacementScores of all clusters without their entries."""
        return tuple(await retry_when_gone(lambda: score_names(self.hub)))

    async def placement_status(
        self, namespace: str, optimization: str | None = None
    ) -> PlacementStatus:
        """Return what OCM has made of the generated objects of a namespace; write nothing.

        With `optimization`, only of the objects that were generated for it.
        """
        observation = await observe(self.hub, namespace, self.now(), named=False)
        return await asyncio.to_thread(
            recorded_status,
            observation,
            namespace,
            await self._records.read(namespace),
            optimization,
            cluster_label_key=self.settings.cluster_label_key,
        )

    async def fleet(
        self, namespace: str, *, listed: Collection[Kind] = OPTIONAL_KINDS, columns: bool = False
    ) -> FleetFacts:
        """Return what answers about the fleet are made of, with the objects of one namespace.

        `listed`: which of the OPTIONAL_KINDS are read. `columns`: whether the entries of scores
        are kept, not their aggregates alone.
        """
        return await observe_fleet(
            self.hub,
            namespace,
            now=self.now,
            listed=listed,
            columns=columns,
            records=await self.recorded_plans(namespace),
            cluster_label_key=self.settings.cluster_label_key,
        )

    async def recorded_plans(self, namespace: str) -> tuple[RecordedPlan, ...] | Issue:
        """Return the recorded plans of a namespace; they are large, so only after a change anew."""
        changes, heard = self.hub.changes(PLACEMENT_PLAN), self.rollouts.records.heard(namespace)
        known, now = self._known_records.get(namespace), asyncio.get_running_loop().time()
        if known and known[0] == changes and now - heard <= MAX_AGE_SECONDS:
            note_heard(heard)
            return known[1]
        found = await self._records.read(namespace)
        self._known_records.put(namespace, (changes, found))
        return found

    async def missing_namespace(
        self, namespace: str, others: Sequence[str] = ()
    ) -> RequestProblem | None:
        """Return the problem of a namespace that the hub has not; None also if it can't be read.

        Ask it only if an answer about the namespace is empty. `others`: those with workloads.
        """
        try:
            await self.kube.get(NAMESPACE, namespace)
        except NotFound:
            return _no_namespace(namespace, others)
        except Forbidden:
            return None
        return None

    async def workload_names(self) -> Mapping[str, Sequence[str]]:
        """Return the workloads by namespace; none if they can't be listed everywhere."""
        try:
            found = await list_all(self.hub, MANIFEST_WORK_REPLICA_SET)
        except Forbidden:
            return {}
        names = ((obj["metadata"]["namespace"], name_of(obj)) for obj in filter(is_workload, found))
        return members_by_key(sorted(names))

    async def namespaces_with_workloads(self) -> tuple[str, ...]:
        """Return the namespaces that have workloads; none if they can't be listed everywhere."""
        return tuple(await self.workload_names())

    async def score_history(
        self, score: str, cluster: str, hours: int, app: str
    ) -> ScoreHistory | RequestProblem:
        """Return how a score of a managed cluster, or of all, changed over the last hours."""
        now = self.now().timestamp()
        return await self._history.read(HistoryQuestion(score, cluster, hours, now, app))

    async def scorer_histories(self, hours: int) -> ScorerHistories | RequestProblem:
        """Return how all scorers did over the last hours."""
        return await scorer_histories(self._history, hours, self.now().timestamp())

    @property
    def answer_gap(self) -> float:
        """The optimality gap of plans that a person waits for, unless a request says its own."""
        return max(self.settings.gap, ANSWER_GAP)

    async def plan(
        self,
        request: OptimizeRequest,
        *,
        name_others: bool = True,
        pretended: PretendedObjects | None = None,
        report: Callable[[Solution], None] = ignored,
        to_apply: bool = False,
    ) -> Plan | RequestProblem:
        """Make a plan; write nothing.

        A plan `to_apply`, and why there is none, are what the API server says, not what watches do.
        `name_others`: whether the plan names what other namespaces have; it counts in any case.
        `pretended`: what the hub is pretended to have; such a plan must not be applied. `report`
        is called in another thread with each better decision that the solver finds.
        """

        async def planned(kube: Lister) -> Plan | RequestProblem:
            planner = self._planner(pretended_hub(kube, pretended))
            return await planner.plan(request, name_others=name_others, report=report)

        made = await self._in_turn(lambda: self._confirmed(planned, to_apply=to_apply))
        if isinstance(made, Plan) and not pretended:
            self.metrics.latest(made, self.now())
        return made

    async def _confirmed(
        self, work: Callable[[Lister], Awaitable[Plan | RequestProblem]], *, to_apply: bool
    ) -> Plan | RequestProblem:
        """Return what the work makes of the hub; what it refuses, it refuses by the API server."""
        if not to_apply:
            with measured_age() as age:
                made = await work(self.hub)
            if isinstance(made, Plan) or age.seconds is None:
                return made
        return await work(self.kube)

    async def read_fleet(
        self, request: OptimizeRequest, last: FleetReading | None = None
    ) -> FleetReading | RequestProblem:
        """Read the fleet of a request, so that it can be planned with a restraint.

        Missing scores have no value in it, whatever the request says: a restraint needs to know
        which are missing. What reads the same as in the `last` reading is taken from there.
        """
        forbidding = request.model_copy(update={"missing_score": "forbid"})
        found = await self._planner(self.hub).read(forbidding, name_others=True, last=last)
        return found if isinstance(found, RequestProblem) else found._replace(request=request)

    def _planner(self, kube: Lister) -> Planner:
        return Planner(kube, self.settings, now=self.now, solve=self._solve, solved=self._solved)

    async def plan_restrained(
        self, found: FleetReading, restraint: PlanRestraint
    ) -> Plan | RequestProblem:
        """Make the plan of a fleet that a restraint lets be taken; write nothing."""
        planner = self._planner(self.hub)
        made = await self._in_turn(lambda: planner.plan_restrained(found, restraint))
        if isinstance(made, Plan):
            self.metrics.latest(made, self.now())
        return made

    async def plan_rollback(
        self, asked: RollbackRequest, *, name_others: bool = True, to_apply: bool = False
    ) -> Plan | RequestProblem:
        """Make a plan that restores a recorded one; write nothing. `to_apply`: as for `plan`.

        Refused, with the differences, where the hub no longer allows what that plan decided.
        """

        async def planned(kube: Lister) -> Plan | RequestProblem:
            return await self._plan_rollback(kube, asked, name_others=name_others)

        return await self._in_turn(lambda: self._confirmed(planned, to_apply=to_apply))

    async def recorded(self, digest: str) -> list[RecordedPlan]:
        """Return the recorded plans of all namespaces whose digest begins so."""
        return await self._records.find(digest, self.settings.rollout_namespaces)

    async def _scores(
        self, names: Collection[str], namespace: str | None
    ) -> list[ScoreObject] | RequestProblem:
        most, entries, read = self.settings.max_listed, 0, list[ScoreObject]()
        async for page in score_pages(self.hub, names, namespace=namespace):
            found = [score_object(obj, now=self.now()) for obj in page]
            entries += sum(len(item.scores) for item in found)
            if entries > most:
                return ProblemKind.TOO_MANY_SCORES.because(
                    f"at most {most} entries are listed at once; name a cluster or a score"
                )
            read += found
        return read

    async def _in_turn(
        self, work: Callable[[], Awaitable[Plan | RequestProblem]]
    ) -> Plan | RequestProblem:
        """Return what the work returns; refused while `max_solves` plans are being made."""
        began, most = monotonic(), self.settings.max_solves
        busy = self._solving >= most
        self._solving += not busy
        try:
            refused = ProblemKind.BUSY.because(f"{most} plans are being made; try again later")
            made = refused if busy else await work()
        except BaseException:
            self.metrics.planning_failed()
            raise
        finally:
            self._solving -= not busy
        self.metrics.planned(made, monotonic() - began)
        return made

    async def _plan_rollback(
        self, kube: Lister, asked: RollbackRequest, *, name_others: bool
    ) -> Plan | RequestProblem:
        records = await self._records.read(asked.namespace)
        if isinstance(records, Issue):
            return no_records(records)
        restored = await asyncio.to_thread(restored_plan, records, asked)
        if isinstance(restored, RequestProblem):
            return restored
        made = await self._planner(kube).restore(restored, name_others=name_others)
        return made if isinstance(made, RequestProblem) else replace(made, rollback=restored.of)


def _no_namespace(namespace: str, others: Sequence[str]) -> RequestProblem:
    named = UntrustedName(namespace)
    known = f"; {nothing_there(namespace, others)}" if others else ""
    return ProblemKind.UNKNOWN_NAMESPACE.because(f"the hub has no namespace {named}{known}")
