"""The optimizer as a service: its doors, over planner, writer, records and rollouts."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from dataclasses import replace
from datetime import datetime
from time import monotonic

from prometheus_client import CollectorRegistry

from dsf.api.names import score_object_name
from dsf.kube.kinds import DYNAMIC_SCORER, MANAGED_CLUSTER
from dsf.kube.port import Kube
from optimizer.domain.issue import Issue
from optimizer.domain.settings import DEFAULTS, OptimizerSettings
from optimizer.history.prometheus_history import PrometheusHistory
from optimizer.history.score_history import HistoryQuestion, ScoreHistory
from optimizer.hypothetical_hub import HypotheticalHub
from optimizer.landing_watch import LandingWatch
from optimizer.metrics import OptimizerMetrics
from optimizer.namespace_lease import LEASE_SECONDS
from optimizer.observe import (
    list_all,
    observe_namespace,
    retry_when_gone,
    score_names,
    score_pages,
)
from optimizer.observe_fleet import observe_fleet
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.overview.fleet_matrix import FleetMatrix, fleet_matrix
from optimizer.overview.what_if import PretendedObjects
from optimizer.placement_status.comparison import placement_status
from optimizer.plan.plan import Plan
from optimizer.plan_records import PlanRecords
from optimizer.plan_writer import OWN_RIGHTS, PlanWriter, Writer
from optimizer.planner import Planner
from optimizer.record.plan_history import history_of
from optimizer.record.record_drift import plans_in_force, with_record_drift
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.record.rollback import no_records, restored_plan
from optimizer.rollout.rollout_commands import COMMANDS
from optimizer.rollout.rollout_problems import no_rollout
from optimizer.rollout.rollout_record import status_of
from optimizer.rollout_controller import RolloutController
from optimizer.snapshot.scores.score_entries import score_object
from optimizer.snapshot.scores.score_list import score_list
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import (
    TOO_MANY_REQUESTS,
    UNPROCESSABLE,
    RequestProblem,
)
from optimizer.wire.result import Applied, ResetResult, ScoreObject
from optimizer.wire.rollout import RolloutCommand, RolloutList, RolloutStatus


class Optimizer:
    """Plans placements for the workloads of one hub, and applies the plans.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    `registry` has its metrics; by default one of its own.
    """

    def __init__(
        self,
        kube: Kube,
        settings: OptimizerSettings = DEFAULTS,
        *,
        now: Callable[[], datetime],
        lease_seconds: float = LEASE_SECONDS,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self._metrics = OptimizerMetrics(self.registry)
        self._kube = kube
        self._settings = settings
        self._now = now
        self._solving = 0
        self._records = PlanRecords(kube, now=now, limit=settings.plan_history_limit)
        self.landings = LandingWatch(kube, now=now, namespaces=settings.rollout_namespaces)
        self.rollouts = RolloutController(
            kube,
            self._records,
            now=now,
            namespaces=settings.rollout_namespaces,
            lease_seconds=lease_seconds,
            cluster_label_key=settings.cluster_label_key,
            metrics=self._metrics,
        )
        self._history = PrometheusHistory(settings.prometheus_url)
        self._planner = Planner(kube, settings, now=now)
        self._writer = PlanWriter(
            kube, settings, self._records, self.rollouts, now=now, lease_seconds=lease_seconds
        )

    async def ready(self) -> None:
        """Raise KubeError where the hub can't be read."""
        await self._kube.list(MANAGED_CLUSTER, limit=1)

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
        return score_list(read, await list_all(self._kube, DYNAMIC_SCORER) if described else ())

    async def score_names(self) -> tuple[ScoreObject, ...]:
        """Return the AddOnPlacementScores of all clusters without their entries."""
        return tuple(await retry_when_gone(lambda: score_names(self._kube)))

    async def placement_status(
        self, namespace: str, optimization: str | None = None
    ) -> PlacementStatus:
        """Return what OCM has made of the generated objects of a namespace; write nothing.

        With `optimization`, only of the objects that were generated for it.
        """
        observation = await observe_namespace(self._kube, namespace, self._now())
        records = await self._records.read(namespace)
        kept = () if isinstance(records, Issue) else records

        def compared() -> PlacementStatus:
            rolling_out = {item.spec.optimization for item in kept if item.is_rolling_out}
            found = placement_status(observation, namespace, optimization, rolling_out=rolling_out)
            return with_record_drift(found, plans_in_force(kept, optimization), observation)

        return await asyncio.to_thread(compared)

    async def rollouts_of(self, namespace: str) -> RolloutList:
        """Return the newest rollout of each optimization of a namespace."""
        records = await self.rollouts.of_namespace(namespace)
        return RolloutList(items=tuple(map(status_of, records)))

    async def rollout(self, namespace: str, optimization: str) -> RolloutStatus | RequestProblem:
        """Return the newest rollout of an optimization."""
        record = await self.rollouts.find(namespace, optimization)
        return status_of(record) if record else no_rollout(namespace, optimization)

    async def rollout_changes(
        self, namespace: str, optimization: str
    ) -> AsyncGenerator[RolloutStatus]:
        """Yield the newest rollout of an optimization whenever it changes, until it ends."""
        async for record in self.rollouts.changes(namespace, optimization):
            yield status_of(record)

    async def change_rollout(
        self, namespace: str, optimization: str, command: RolloutCommand
    ) -> RolloutStatus | RequestProblem:
        """Pause, resume, undo or cancel the newest rollout of an optimization."""
        changed = await self.rollouts.command(namespace, optimization, COMMANDS[command])
        if changed is None:
            return no_rollout(namespace, optimization)
        return changed if isinstance(changed, RequestProblem) else status_of(changed)

    async def fleet(
        self, namespace: str, *, described: bool = True, columns: bool = False
    ) -> FleetFacts:
        """Return what answers about the fleet are made of, with the objects of one namespace.

        `described`: whether the DynamicScorers are read too. `columns`: whether the entries of
        scores are kept, not their aggregates alone.
        """
        return await observe_fleet(
            self._kube, namespace, now=self._now, described=described, columns=columns
        )

    async def fleet_matrix(self, namespace: str, *, described: bool = True) -> FleetMatrix:
        """Return the fleet as a matrix of clusters and scores, for the objects of a namespace."""
        facts = await self.fleet(namespace, described=described, columns=True)
        return await asyncio.to_thread(fleet_matrix, facts)

    async def score_history(
        self, score: str, cluster: str, hours: int
    ) -> ScoreHistory | RequestProblem:
        """Return how a score of a managed cluster changed over the last hours."""
        now = self._now().timestamp()
        return await self._history.read(HistoryQuestion(score, cluster, hours, now))

    async def plan(
        self,
        request: OptimizeRequest,
        *,
        name_others: bool = True,
        pretended: PretendedObjects | None = None,
    ) -> Plan | RequestProblem:
        """Make a plan; write nothing.

        `name_others`: whether the plan names what other namespaces have; it counts in any case.
        `pretended`: what the hub is pretended to have; such a plan must not be applied.
        """
        planner = self._planner
        if pretended is not None:
            hub = HypotheticalHub(self._kube, pretended)
            planner = Planner(hub, self._settings, now=self._now)
        made = await self._in_turn(lambda: planner.plan(request, name_others=name_others))
        if isinstance(made, Plan) and pretended is None:
            self._metrics.latest(made, self._now())
        return made

    async def plan_rollback(
        self, asked: RollbackRequest, *, name_others: bool = True
    ) -> Plan | RequestProblem:
        """Make a plan that restores a recorded one; write nothing.

        Refused, with the differences, where the hub no longer allows what that plan decided.
        """
        return await self._in_turn(lambda: self._plan_rollback(asked, name_others=name_others))

    async def plans(self, namespace: str) -> tuple[RecordedPlan, ...] | Issue:
        """Return the recorded plans of a namespace, the newest first, or why the hub has none."""
        return await self._records.read(namespace)

    async def apply(
        self,
        plan: Plan,
        writer: Writer = OWN_RIGHTS,
        *,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Applied | RequestProblem:
        """Apply exactly the changes of a plan.

        Refused if the facts that it depends on have changed, or while another optimizer, of this
        process or another one, writes to any namespace. `wanted` is called before the first write;
        if it returns False, nothing is written.
        """
        try:
            outcome = await self._writer.apply(plan, writer, wanted=wanted)
        except BaseException:
            self._metrics.applying_failed()
            raise
        self._metrics.applied(outcome, stepwise=plan.rollout is not None)
        return outcome

    async def reset(
        self,
        namespace: str,
        writer: Writer = OWN_RIGHTS,
        *,
        optimization: str | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> ResetResult | RequestProblem:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        With `optimization`, only those that were generated for it.
        `wanted` is called before the first deletion; if it returns False, nothing is deleted.
        """
        outcome = await self._writer.reset(
            namespace, writer, optimization=optimization, wanted=wanted
        )
        self._metrics.was_reset(outcome)
        return outcome

    async def _scores(
        self, names: Collection[str], namespace: str | None
    ) -> list[ScoreObject] | RequestProblem:
        most, entries, read = self._settings.max_listed, 0, list[ScoreObject]()
        async for page in score_pages(self._kube, names, namespace=namespace):
            found = [score_object(obj, now=self._now()) for obj in page]
            entries += sum(len(item.scores) for item in found)
            if entries > most:
                return _too_long(most)
            read += found
        return read

    async def _in_turn(
        self, work: Callable[[], Awaitable[Plan | RequestProblem]]
    ) -> Plan | RequestProblem:
        """Return what the work returns; refused while `max_solves` plans are being made."""
        began = monotonic()
        try:
            made = await self._unless_busy(work)
        except BaseException:
            self._metrics.planning_failed()
            raise
        self._metrics.planned(made, monotonic() - began)
        return made

    async def _unless_busy(
        self, work: Callable[[], Awaitable[Plan | RequestProblem]]
    ) -> Plan | RequestProblem:
        if self._solving >= self._settings.max_solves:
            return _busy(self._settings.max_solves)
        self._solving += 1
        try:
            return await work()
        finally:
            self._solving -= 1

    async def _plan_rollback(
        self, asked: RollbackRequest, *, name_others: bool
    ) -> Plan | RequestProblem:
        records = await self._records.read(asked.namespace)
        if isinstance(records, Issue):
            return no_records(records)
        history = history_of(records, asked.optimization)
        restored = await asyncio.to_thread(restored_plan, history, asked)
        if isinstance(restored, RequestProblem):
            return restored
        made = await self._planner.restore(restored, name_others=name_others)
        return made if isinstance(made, RequestProblem) else replace(made, rollback=restored.of)


def _too_long(most: int) -> RequestProblem:
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="TooManyScores",
        title="There are too many scores to list at once",
        detail=f"at most {most} entries are listed at once; name a cluster or a score",
    )


def _busy(most: int) -> RequestProblem:
    return RequestProblem(
        status=TOO_MANY_REQUESTS,
        reason="Busy",
        title="The optimizer is busy",
        detail=f"{most} plans are being made; try again later",
    )
