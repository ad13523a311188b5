"""The optimizer as a service: observe, read, generate candidates, formulate, solve, plan, apply."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import TypeVar

from dsf.api.names import score_object_name
from dsf.kube.apply import apply
from dsf.kube.changes import Change
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_BINDING,
    POLICY,
)
from dsf.kube.port import Kube
from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.domain.fleet import Fleet
from optimizer.domain.issue import Issue
from optimizer.domain.settings import DEFAULTS, OptimizerSettings
from optimizer.domain.solution import Solution
from optimizer.explain.case import Case, case_of
from optimizer.explain.explanation_process.run import explain
from optimizer.landing_watch import LandingWatch
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.problem_size import too_large, too_large_to_read
from optimizer.namespace_lease import LEASE_SECONDS, NamespaceLease, write_alone
from optimizer.observe import (
    list_all,
    observe,
    observe_namespace,
    retry_when_gone,
    score_pages,
)
from optimizer.placement_status.comparison import placement_status
from optimizer.plan.generated_objects import failures, reset_changes, successes
from optimizer.plan.manifests import GENERATED_SELECTOR
from optimizer.plan.plan import Plan, plan, stale
from optimizer.plan.rollout_plan import RolloutPace, RolloutPlan
from optimizer.plan_records import PlanRecords
from optimizer.record.plan_annotations import annotated
from optimizer.record.plan_history import history_of
from optimizer.record.record_drift import plans_in_force, with_record_drift
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.record.rollback import (
    RestoredPlan,
    no_records,
    restored_plan,
    with_recorded_policies,
)
from optimizer.record.rollback_check import not_allowed, restored_solution
from optimizer.rollout.rollout_commands import COMMANDS
from optimizer.rollout.rollout_problems import (
    needs_own_rights,
    needs_record,
    no_rollout,
    rollout_in_progress,
    rollout_on_clusters,
)
from optimizer.rollout.rollout_record import status_of
from optimizer.rollout.rollout_steps import rollout_plan
from optimizer.rollout_controller import RolloutController
from optimizer.snapshot.fleet_reader import FleetReader
from optimizer.snapshot.fleet_snapshot import FleetSnapshot, read_objects
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.kept_objects import kept_objects, own_decisions
from optimizer.snapshot.requested_gpus import mig_rules
from optimizer.snapshot.scores.score_entries import score_object
from optimizer.snapshot.scores.score_list import score_list
from optimizer.snapshot.unknown_names import unknown_names
from optimizer.solve.solver_process import solve
from optimizer.solve.supervised_process import start_fork_server
from optimizer.wire.explanation import Explanation
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import (
    CALLER_GONE,
    TOO_MANY_REQUESTS,
    UNPROCESSABLE,
    RequestProblem,
)
from optimizer.wire.result import Applied, ObjectRef, ResetResult, ScoreObject
from optimizer.wire.rollout import RolloutCommand, RolloutList, RolloutStatus
from optimizer.writers_elsewhere import WritersElsewhere

T = TypeVar("T")


async def _anything(_: Sequence[Change]) -> RequestProblem | None:
    return None


@dataclass(frozen=True, slots=True)
class Writer:
    """With whose rights generated objects are written.

    `permit` is called with the changes before the first write; it returns a problem if they are
    refused. Without `kube` they are written with the optimizer's own rights. `user`: who asked, for
    the record of the plan. `name_others`: whether a refusal may name what other namespaces have.
    """

    permit: Callable[[Sequence[Change]], Awaitable[RequestProblem | None]] = _anything
    kube: Kube | None = None
    user: str = ""
    name_others: bool = True


OWN_RIGHTS = Writer()


class Optimizer:
    """Plans placements for the workloads of one hub, and applies the plans.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    """

    def __init__(
        self,
        kube: Kube,
        settings: OptimizerSettings = DEFAULTS,
        *,
        now: Callable[[], datetime],
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._now = now
        self._solving = 0
        self._lease_seconds = lease_seconds
        self._elsewhere = WritersElsewhere(kube)
        self._records = PlanRecords(kube, now=now, limit=settings.plan_history_limit)
        self.landings = LandingWatch(kube, now=now, namespaces=settings.rollout_namespaces)
        self.rollouts = RolloutController(
            kube,
            self._records,
            now=now,
            namespaces=settings.rollout_namespaces,
            lease_seconds=lease_seconds,
            cluster_label_key=settings.cluster_label_key,
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
        return tuple(await retry_when_gone(self._score_names))

    async def placement_status(
        self, namespace: str, optimization: str | None = None
    ) -> PlacementStatus:
        """Return what OCM has made of the generated objects of a namespace; write nothing.

        With `optimization`, only of the objects that were generated for it.
        """
        observation = await observe_namespace(self._kube, namespace, self._now())
        records = await self._records.read(namespace)
        in_force = [] if isinstance(records, Issue) else plans_in_force(records, optimization)
        found = await asyncio.to_thread(placement_status, observation, namespace, optimization)
        return await asyncio.to_thread(with_record_drift, found, in_force, observation)

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

    async def plan(
        self, request: OptimizeRequest, *, name_others: bool = True
    ) -> Plan | RequestProblem:
        """Make a plan; write nothing.

        `name_others`: whether the plan names what other namespaces have; it counts in any case.
        """
        return await self._in_turn(lambda: self._plan(request, name_others=name_others))

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
        return await self._write_alone(
            plan.request.namespace,
            lambda lease: self._apply(plan, lease, writer, wanted),
            elsewhere=self._elsewhere,
        )

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
        return await self._write_alone(
            namespace,
            lambda lease: self._reset(namespace, optimization, lease, writer, wanted),
            elsewhere=None,
        )

    async def _write_alone(
        self,
        namespace: str,
        work: Callable[[NamespaceLease], Awaitable[T]],
        elsewhere: WritersElsewhere | None,
    ) -> T | RequestProblem:
        return await write_alone(
            self._kube, namespace, work, elsewhere=elsewhere, lease_seconds=self._lease_seconds
        )

    async def _apply(
        self, plan: Plan, lease: NamespaceLease, writer: Writer, wanted: Callable[[], bool]
    ) -> Applied | RequestProblem:
        observation = await observe(
            self._kube, plan.request.namespace, self._now(), named=writer.name_others
        )
        if lease.unseen and not observation.unread:
            raise lease.unseen
        if refused := await self._refused(plan, observation, lease, writer):
            return refused
        if not wanted():
            return CALLER_GONE
        if plan.rollout:
            return await self._begin_rollout(plan, writer, observation)
        await lease.announce(plan.digest)
        record = await self._records.open(plan, writer.user, observation)
        outcomes = await apply(writer.kube or self._kube, annotated(plan))
        failed = failures(outcomes)
        return Applied(
            digest=plan.digest,
            applied=successes(outcomes),
            failed=failed,
            record=record.name,
            issues=await self._records.close(record, failed),
        )

    async def _refused(
        self, plan: Plan, observation: Observation, lease: NamespaceLease, writer: Writer
    ) -> RequestProblem | None:
        """Return why a plan is not written; None if it can be."""
        refused = await self._rolling_out(
            plan.request.namespace, plan.optimization, plan.changed_clusters
        )
        if refused:
            return refused
        if plan.rollout and writer.kube:
            return needs_own_rights()
        refused = await asyncio.to_thread(stale, plan, observation, self._settings)
        return lease.name_last_plan(refused) if refused else await writer.permit(plan.changes)

    async def _begin_rollout(
        self, plan: Plan, writer: Writer, observation: Observation
    ) -> Applied | RequestProblem:
        """Record a rollout; its steps are written by `rollouts`, in this process or another one."""
        await self.rollouts.check_rights()
        opened = await self._records.open(plan, writer.user, observation)
        if opened.issue:
            return needs_record(opened.issue.message)
        self.rollouts.nudge()
        return Applied(digest=plan.digest, applied=(), record=opened.name)

    async def _rolling_out(
        self, namespace: str, optimization: str | None, clusters: Collection[str] = ()
    ) -> RequestProblem | None:
        """Return a refusal while a rollout goes on: of the optimization, or on these clusters."""
        for record in await self.rollouts.in_progress(namespace):
            if optimization in (None, record.optimization):
                return rollout_in_progress(record)
            if shared := record.clusters.intersection(clusters):
                return rollout_on_clusters(record, sorted(shared))
        return None

    async def _reset(
        self,
        namespace: str,
        optimization: str | None,
        lease: NamespaceLease,
        writer: Writer,
        wanted: Callable[[], bool],
    ) -> ResetResult | RequestProblem:
        if refused := await self._rolling_out(namespace, optimization):
            return refused
        placements, bindings, policies = await asyncio.gather(
            list_all(self._kube, PLACEMENT, namespace, labels=GENERATED_SELECTOR),
            list_all(self._kube, PLACEMENT_BINDING, namespace),
            list_all(self._kube, POLICY, namespace, labels=GENERATED_SELECTOR),
        )
        observation = Observation(placements=placements, bindings=bindings, policies=policies)
        deletions = reset_changes(observation, optimization)
        if refused := await writer.permit(deletions):
            return refused
        if not wanted():
            return CALLER_GONE
        await lease.announce("")
        outcomes = await apply(writer.kube or self._kube, deletions)
        await self._records.forget_current(namespace, optimization)
        deleted = tuple(
            ObjectRef(kind=change.kind, namespace=change.namespace, name=change.name)
            for change in successes(outcomes)
        )
        return ResetResult(deleted=deleted, failed=failures(outcomes))

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

    async def _score_names(self) -> list[ScoreObject]:
        return [
            ScoreObject(cluster=obj["metadata"].get("namespace") or "", name=name_of(obj))
            async for page in score_pages(self._kube)
            for obj in page
        ]

    async def _in_turn(
        self, work: Callable[[], Awaitable[Plan | RequestProblem]]
    ) -> Plan | RequestProblem:
        """Return what the work returns; refused while `max_solves` plans are being made."""
        if self._solving >= self._settings.max_solves:
            return _busy(self._settings.max_solves)
        self._solving += 1
        try:
            return await work()
        finally:
            self._solving -= 1

    async def _plan(self, request: OptimizeRequest, *, name_others: bool) -> Plan | RequestProblem:
        """Observe, read, generate candidates, formulate, solve, explain, plan."""
        start_fork_server()
        observation = await observe(self._kube, request.namespace, self._now(), named=name_others)
        read = await retry_when_gone(lambda: self._read(observation, request))
        if isinstance(read, RequestProblem):
            return read
        formulated = await self._formulate(read, request)
        if isinstance(formulated, RequestProblem):
            return formulated
        fleet, problem = formulated
        solution = await self._solve(problem, request)
        made = await self._planned(observation, request, read, fleet, problem, solution)
        if isinstance(made, RequestProblem) or not request.explained:
            return made
        case = case_of(request, fleet, problem, solution, read)
        return replace(made, explanation=await self._explain(case))

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
        made = await self._restore(restored, name_others=name_others)
        return made if isinstance(made, RequestProblem) else replace(made, rollback=restored.of)

    async def _restore(self, restored: RestoredPlan, *, name_others: bool) -> Plan | RequestProblem:
        """Observe, read, formulate, check the recorded decision, plan."""
        request = restored.request
        observation = await observe(self._kube, request.namespace, self._now(), named=name_others)
        if unknown := unknown_names(observation, request, request.score_names):
            return not_allowed(restored, unknown.errors)
        reader = await retry_when_gone(
            lambda: self._read_scores(observation, restored.lenient_request)
        )
        if isinstance(reader, RequestProblem):
            return reader
        read = with_recorded_policies(reader.snapshot(), restored.content)
        formulated = await self._formulate(read, request)
        if isinstance(formulated, RequestProblem):
            return formulated
        solution = await asyncio.to_thread(restored_solution, restored, *formulated)
        if isinstance(solution, RequestProblem):
            return solution
        return await self._planned(observation, request, read, *formulated, solution)

    async def _formulate(
        self, read: FleetSnapshot, request: OptimizeRequest
    ) -> tuple[Fleet, Problem] | RequestProblem:
        """Generate candidates, and formulate the problem unless it is too large."""
        fleet = await asyncio.to_thread(
            with_candidates, read.fleet, read.pools, mig_rules(request), read.enforced
        )
        refused = too_large(fleet, self._settings.max_places)
        return refused or (fleet, await asyncio.to_thread(formulate, fleet))

    async def _planned(
        self,
        observation: Observation,
        request: OptimizeRequest,
        read: FleetSnapshot,
        fleet: Fleet,
        problem: Problem,
        solution: Solution,
    ) -> Plan | RequestProblem:
        made = await asyncio.to_thread(
            plan,
            observation,
            request,
            fleet=fleet,
            problem=problem,
            solution=solution,
            settings=self._settings,
        )
        if isinstance(made, RequestProblem):
            return made
        made = replace(made, score_versions=read.score_versions)
        if request.rollout == "AllAtOnce" or not made.changes:
            return made
        steps = await self._steps(made, observation, fleet, problem)
        return steps if isinstance(steps, RequestProblem) else replace(made, rollout=steps)

    async def _steps(
        self, made: Plan, observation: Observation, fleet: Fleet, problem: Problem
    ) -> RolloutPlan | RequestProblem:
        """Return the steps of a plan; ordering them may take as long as solving."""
        until = monotonic() + self._settings.time_limit_seconds
        pace = RolloutPace(
            progress_deadline_seconds=made.request.progress_deadline_seconds,
            min_ready_seconds=made.request.min_ready_seconds,
        )
        return await asyncio.to_thread(
            rollout_plan,
            observation,
            fleet,
            problem,
            made.solution.decision,
            made.manifests,
            kept=kept_objects(
                observation,
                made.request,
                own_decisions(observation, made.request, self._settings),
            ),
            pace=pace,
            settings=self._settings,
            time_left=lambda: monotonic() < until,
        )

    async def _solve(self, problem: Problem, request: OptimizeRequest) -> Solution:
        return await solve(
            problem,
            solver=self._settings.solver,
            time_limit_seconds=self._settings.time_limit_seconds,
            gap=self._settings.gap if request.gap is None else request.gap,
            seed=self._settings.seed,
            memory_mib=self._settings.memory_mib,
        )

    async def _explain(self, case: Case) -> Explanation:
        return await explain(
            case,
            solver=self._settings.solver,
            time_limit_seconds=self._settings.time_limit_seconds,
        )

    async def _read(
        self, observation: Observation, request: OptimizeRequest
    ) -> FleetSnapshot | RequestProblem:
        """Read the fleet of a request; scores are read page by page and only one page is kept."""
        unknown = unknown_names(observation, request, request.score_names)
        if unknown:
            return unknown_names(observation, request, await self._existing(request)) or unknown
        reader = await self._read_scores(observation, request)
        if isinstance(reader, RequestProblem):
            return reader
        if not request.score_names <= reader.seen:
            unknown = unknown_names(observation, request, await self._existing(request))
            if unknown is not None:
                return unknown
        return await asyncio.to_thread(reader.snapshot)

    async def _read_scores(
        self, observation: Observation, request: OptimizeRequest
    ) -> FleetReader | RequestProblem:
        most = self._settings.max_places
        unscored = await asyncio.to_thread(read_objects, observation, request, self._settings)
        refused = too_large_to_read(unscored, len(request.read_scores), most)
        if refused:
            return refused
        reader = FleetReader(unscored, request, settings=self._settings, now=self._now())
        async for page in score_pages(self._kube, request.score_names):
            await asyncio.to_thread(reader.add, page)
        return reader

    async def _existing(self, request: OptimizeRequest) -> frozenset[str]:
        """Return the names of all scores that clusters of the request have."""
        scores = await self._score_names()
        return frozenset(item.name for item in scores if item.cluster in request.cluster_names)


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
