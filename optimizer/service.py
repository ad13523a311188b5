"""The optimizer as a service: observe the hub, decide, apply."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

from dsf.api.names import score_object_name
from dsf.kube.apply import apply
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_BINDING,
    POLICY,
)
from dsf.kube.port import Kube
from optimizer.domain.fleet import Fleet
from optimizer.domain.settings import DEFAULTS, Settings
from optimizer.explain.composition import case_of
from optimizer.explain.process.run import explain
from optimizer.model.formulate import formulate
from optimizer.observe import again, every, observe, score_pages
from optimizer.plan.generated_objects import changes, failures, successes
from optimizer.plan.manifests import GENERATED_SELECTOR
from optimizer.plan.plan import Plan, plan, stale
from optimizer.snapshot.fleet_reader import FleetReader
from optimizer.snapshot.labels import name_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.score_list import score_list
from optimizer.snapshot.score_table import score_object
from optimizer.solve.solver_process import solve
from optimizer.solve.supervised_process import start_fork_server
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import TOO_MANY_REQUESTS, UNPROCESSABLE, RequestProblem
from optimizer.wire.result import Applied, ObjectRef, ResetResult, ScoreObject


class Optimizer:
    """Plans placements for the workloads of one hub, and applies the plans.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    """

    def __init__(
        self, kube: Kube, settings: Settings = DEFAULTS, *, now: Callable[[], datetime]
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._now = now
        self._solving = 0
        self._writing = asyncio.Lock()

    async def ready(self) -> None:
        """Raise KubeError where the hub can't be read."""
        await self._kube.list(MANAGED_CLUSTER, limit=1)

    async def scores(
        self, *, namespace: str | None = None, name: str | None = None
    ) -> tuple[ScoreObject, ...] | RequestProblem:
        """Return the AddOnPlacementScores of all clusters, or of one namespace or name.

        Refused are more entries than an answer lists.
        """
        names = () if name is None else (score_object_name(name),)
        if names == ("",):
            return ()
        read = await again(lambda: self._scores(names, namespace))
        if isinstance(read, RequestProblem):
            return read
        return score_list(read, await every(self._kube, DYNAMIC_SCORER))

    async def score_names(self) -> tuple[ScoreObject, ...]:
        """Return the AddOnPlacementScores of all clusters without their entries."""
        return tuple(await again(self._score_names))

    async def plan(self, request: OptimizeRequest) -> Plan | RequestProblem:
        """Observe and decide, write nothing."""
        if self._solving >= self._settings.max_solves:
            return _busy(self._settings.max_solves)
        self._solving += 1
        try:
            return await self._plan(request)
        finally:
            self._solving -= 1

    async def apply(self, plan: Plan) -> Applied | RequestProblem:
        """Apply exactly the changes of a plan; refuse where what it rests on has moved."""
        namespace = plan.request.namespace
        async with self._writing:
            observation = await observe(self._kube, namespace)
            refused = await asyncio.to_thread(stale, plan, observation, self._settings)
            if refused:
                return refused
            outcomes = await apply(self._kube, plan.changes)
        return Applied(digest=plan.digest, applied=successes(outcomes), failed=failures(outcomes))

    async def reset(self, namespace: str) -> ResetResult:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace."""
        async with self._writing:
            placements, bindings, policies = await asyncio.gather(
                every(self._kube, PLACEMENT, namespace, labels=GENERATED_SELECTOR),
                every(self._kube, PLACEMENT_BINDING, namespace, labels=GENERATED_SELECTOR),
                every(self._kube, POLICY, namespace, labels=GENERATED_SELECTOR),
            )
            observation = Observation(placements=placements, bindings=bindings, policies=policies)
            outcomes = await apply(self._kube, changes((), observation))
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

    async def _plan(self, request: OptimizeRequest) -> Plan | RequestProblem:
        start_fork_server()
        observation = await observe(self._kube, request.namespace)
        fleet = await again(lambda: self._fleet(observation, request))
        if isinstance(fleet, RequestProblem):
            return fleet
        problem = await asyncio.to_thread(formulate, fleet)
        solution = await solve(
            problem,
            solver=self._settings.solver,
            time_limit_seconds=self._settings.time_limit_seconds,
            gap=self._settings.gap if request.gap is None else request.gap,
            seed=self._settings.seed,
            memory_mib=self._settings.memory_mib,
        )
        made = await asyncio.to_thread(
            plan,
            observation,
            request,
            fleet=fleet,
            problem=problem,
            solution=solution,
            settings=self._settings,
        )
        if isinstance(made, RequestProblem) or not request.explained:
            return made
        explanation = await explain(
            case_of(request, fleet, problem, solution),
            solver=self._settings.solver,
            time_limit_seconds=self._settings.time_limit_seconds,
        )
        return replace(made, explanation=explanation)

    async def _fleet(
        self, observation: Observation, request: OptimizeRequest
    ) -> Fleet | RequestProblem:
        """Read the fleet; of scores no more is kept than one page at a time."""
        reader = await asyncio.to_thread(
            FleetReader, observation, request, settings=self._settings, now=self._now()
        )
        if reader.refused:
            return reader.refused
        async for page in score_pages(self._kube, reader.score_names):
            await asyncio.to_thread(reader.add, page)
        if reader.lacking:  # say which there are
            async for page in score_pages(self._kube):
                await asyncio.to_thread(reader.add, page)
        unknown = reader.unknown()
        return await asyncio.to_thread(reader.fleet) if unknown is None else unknown


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
