"""Plays a scenario: the product's parts on embedded hubs, on one virtual clock."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

from prometheus_client import CollectorRegistry

from dsf.agent.round import RoundRunner
from dsf.agent.run import AgentSettings, round_runner
from dsf.api.conditions import is_true
from dsf.api.names import AGENT_NAMESPACE, REPLICA_SET_LABEL
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.run import HubController, HubOptions
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import Create
from dsf.kube.embedded import EmbeddedHub
from dsf.sim.controllers.registration import LEASE_GRACE_SECONDS, report_availability
from dsf.sim.demo.scorers import scoring_config
from dsf.sim.simulation import Simulation
from dsf.sim.virtual_time import VirtualTimeLoop
from optimizer.domain.settings import ANSWER_GAP, OptimizerSettings, SolverName
from optimizer.domain.solution import Solution
from optimizer.follow.record.recorded_plan import read_records
from optimizer.model.problem import Problem
from optimizer.plan.plan import Plan
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.object_readers import replica_set_of
from optimizer.solve.solver_process import ignored
from optimizer.solve.strategy import solve_problem
from optimizer.solve.warm_start import SolvedProblem, resolve
from optimizer.twin.api_server import TwinApiServer
from optimizer.twin.cluster_parts import ClusterParts
from optimizer.twin.fleet_objects import (
    NAME,
    UnplayableScenario,
    gpu_nodes,
    hub_objects,
    kept_optimization,
    playable,
    spec_of,
    workload,
)
from optimizer.twin.played import Played
from optimizer.twin.run_history import Outcome, RunHistory
from optimizer.twin.scenario import NAMESPACE as OWN
from optimizer.twin.scenario import Scenario
from optimizer.twin.score_series import ScoreSeries
from optimizer.twin.scoring_apis import ScoringApis, TwinProber, dynamic_scorer
from optimizer.wire.placement_optimization import PlacementOptimizationSpec

OCM_SECONDS = 1.0
"""Seconds from a write to what OCM's controllers have made of it."""

HUB = HubOptions(resync_seconds=3600.0, probe_seconds=300.0, report_seconds=60.0)
"""The hub controller looks less often than by default: nothing happens that it could miss."""

LEASE_SECONDS = 3600.0
"""Leases last longer than by default, and are renewed less often: nobody else wants them."""

LOOKS_PER_ROUND = 10
"""How often the optimizer reads scores at most while an agent publishes once: they are the same."""

SETTINGS = OptimizerSettings(gap=ANSWER_GAP)


def play(scenario: Scenario, seed: int | None = None) -> Played:
    """Return what comes of a scenario; `seed`, by default its own, draws scores and jitter.

    The same scenario and seed give the same result. Raises UnplayableScenario. It runs an event
    loop of its own, whose clock jumps, so it must not be called in another one.
    """
    used = scenario.seed if seed is None else seed
    spec = spec_of(scenario)
    before = random.getstate()
    random.seed(used)  # the product's parts draw their jitter from it
    try:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(_play(scenario, spec, used))
    finally:
        random.setstate(before)


async def _play(scenario: Scenario, spec: PlacementOptimizationSpec, seed: int) -> Played:
    return await _Twin(scenario, spec, seed).play()


async def _solve_here(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float = 0.0,
    seed: int = 0,
    memory_mib: int = 0,  # noqa: ARG001 - there is no process to limit
    previous: SolvedProblem | None = None,
    report: Callable[[Solution], None] = ignored,
) -> Solution:
    """Solve in this process; each look at the clock takes a millisecond, however long it takes."""
    looks, start = count(), None if previous is None else previous.solution
    if previous is not None and (
        found := resolve(problem, previous, gap=gap, stop=lambda: False, clock=lambda: 0.0)
    ):
        start, is_enough = found
        if is_enough:
            return start
    return solve_problem(
        problem,
        solver=solver,
        time_limit_seconds=time_limit_seconds,
        gap=gap,
        seed=seed,
        incumbent=None if start is None else start.decision,
        prices=() if start is None else start.prices,
        report=report,
        clock=lambda: next(looks) / 1000,
    )


class _Twin:
    """A run: the parts, the fleet, and what is seen of it."""

    def __init__(self, scenario: Scenario, spec: PlacementOptimizationSpec, seed: int) -> None:
        self._scenario, self._spec, self._seed = scenario, spec, seed
        self._series = ScoreSeries(scenario, seed)
        self._history = RunHistory()
        self._changed, self._recorded, self._arrived = (asyncio.Event() for _ in range(3))
        self._works_changed = self._plans_changed = False
        self._devices = dict[tuple[str, str], str]()
        self._parts = dict[str, ClusterParts]()
        uids = (f"00000000-0000-4000-8000-{n:012d}" for n in count())
        hubs = {
            name: EmbeddedHub(now=self._now, new_uid=lambda: next(uids))
            for name in ("", *scenario.cluster_names)
        }
        self._inner = hubs.pop("")
        self._managed = {
            name: TwinApiServer(hub, partial(self._wrote, cluster=name))
            for name, hub in hubs.items()
        }
        self._hub = TwinApiServer(self._inner, self._wrote, lambda: self._reaches(""))
        own = TwinApiServer(self._inner, self._wrote)
        self._simulation = Simulation(own, self._managed, now=self._now)
        self._apis = ScoringApis(scenario, self._series, self._time)
        self._optimizer = Optimizer(
            self._hub,
            SETTINGS,
            now=self._now,
            identity=NAME,
            lease_seconds=LEASE_SECONDS,
            solve=_solve_here,
        )

    async def play(self) -> Played:
        """Run everything until the end."""
        await self._apply(hub_objects(self._scenario, now=rfc3339(self._now())))
        for name, managed in self._managed.items():
            for namespace in (AGENT_NAMESPACE, name, SETTINGS.mig.config_namespace):
                await managed.create(kinds.NAMESPACE, {"metadata": {"name": namespace}})
        for name, node in gpu_nodes(self._scenario, SETTINGS.mig):
            await self._managed[name].create(kinds.NODE, node)
        interval = self._scenario.scoring_interval
        names = dict.fromkeys(score.name for score in self._scenario.scores)
        scorers = (dynamic_scorer(name, interval) for name in names)
        await self._apply(Create(kinds.DYNAMIC_SCORER, obj) for obj in scorers)
        await self._apply([Create(kinds.DYNAMIC_SCORING_CONFIG, scoring_config())])
        controller = HubController(
            self._hub,
            HUB,
            prober=TwinProber(self._apis),
            now=self._now,
            registry=CollectorRegistry(),
        )
        async with (
            round_runner(AgentSettings(""), None, self._now) as base,
            asyncio.TaskGroup() as tasks,
        ):
            self._parts = {name: self._parts_of(name, base) for name in self._managed}
            running = [
                tasks.create_task(work())
                for work in (
                    controller.run,
                    self._optimizer.hub.run,
                    self._ocm,
                    self._place,
                    self._roll_out,
                )
            ]
            await self._live_through(tasks)
            for part in self._parts.values():
                part.keep(tasks, agent=False, watcher=False)
            for task in running:
                task.cancel()
        return self._played()

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _now(self) -> datetime:
        return self._scenario.start + timedelta(seconds=self._time())

    def _parts_of(self, name: str, base: RoundRunner) -> ClusterParts:
        hub = TwinApiServer(self._inner, self._wrote, lambda: self._reaches(name))
        managed = self._managed[name]
        return ClusterParts(name, base, self._apis, hub=hub, managed=managed, now=self._now)

    async def _apply(self, changes: Any) -> None:
        for outcome in await apply(self._hub, changes):
            if outcome.error is not None:
                raise UnplayableScenario(f"{outcome.change}: {outcome.error}")

    def _wrote(self, kind: kinds.Kind, namespace: str | None, cluster: str = "") -> None:
        self._simulation.note(kind, namespace, cluster)
        self._works_changed |= kind == kinds.MANIFEST_WORK
        if kind == kinds.PLACEMENT_PLAN:
            self._plans_changed = True
            self._recorded.set()
        if kind == kinds.CONFIG_MAP and namespace == AGENT_NAMESPACE:
            self._parts[cluster].configured.set()
        if self._simulation.is_due:
            self._changed.set()

    def _reaches(self, cluster: str) -> bool:
        """Tell whether a cluster reaches the hub; with "", whether what is beside it does."""
        failing = self._scenario.outages("HubUnreachable", self._time())
        return all(
            one.clusters and cluster not in self._scenario.named_clusters(one.clusters)
            for one in failing
        )

    async def _ocm(self) -> None:
        """Let OCM's simulated controllers follow what is written."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(OCM_SECONDS)
            await self._simulation.settle_due()
            if self._works_changed:
                await self._look()

    async def _look(self) -> None:
        """See what runs: the works that are available, on clusters that answer.

        A replica counts on the device that the newest plan of its cluster gives it.
        """
        self._works_changed = False
        if self._plans_changed:
            self._plans_changed = False
            plans = (await self._inner.list(kinds.PLACEMENT_PLAN, OWN)).items
            content = read_records(plans)[0].content()
            if not isinstance(content, InvalidInput):
                self._devices |= {one[:2]: one.device for one in content.assignments}
        works = (await self._inner.list(kinds.MANIFEST_WORK, labels=REPLICA_SET_LABEL)).items
        running = {
            (replica_set_of(work)[1], work["metadata"]["namespace"])
            for work in works
            if is_true(work, "Available")
            and "deletionTimestamp" not in work["metadata"]
            and work["metadata"]["namespace"] not in self._simulation.lost
        }
        self._history.see({(*one, self._devices[one]) for one in running}, self._time())

    async def _live_through(self, tasks: asyncio.TaskGroup) -> None:
        """Let workloads come and go, and parts fail, until the end."""
        scenario, present = self._scenario, set[str]()
        tenures = list(scenario.tenures())
        times = {0.0, *(time for tenure in tenures for time in (tenure.begins, tenure.ends))}
        for failure in scenario.failures:
            noticed = failure.at + LEASE_GRACE_SECONDS
            times |= {failure.at, noticed, failure.until or 0.0}
            times |= {noticed + seconds + 2 * OCM_SECONDS for seconds in self._tolerated()}
        for time in sorted(one for one in times if one < scenario.duration):
            await asyncio.sleep(time - self._time())
            for tenure in tenures:
                exists = tenure.begins <= time < tenure.ends
                if exists and tenure.workload not in present:
                    present.add(tenure.workload)
                    await self._inner.create(kinds.MANIFEST_WORK_REPLICA_SET, workload(tenure))
                    self._arrived.set()
                elif not exists and tenure.workload in present:
                    present.discard(tenure.workload)
                    await self._inner.delete(kinds.MANIFEST_WORK_REPLICA_SET, tenure.workload, OWN)
            await self._fail(time, tasks)
            self._wrote(kinds.MANIFEST_WORK_REPLICA_SET, OWN)
            self._wrote(kinds.PLACEMENT, OWN)
        await asyncio.sleep(scenario.duration - self._time())

    def _tolerated(self) -> set[int]:
        """Return for how many seconds taints are tolerated; Placements are looked at then."""
        groups = (group.tolerations or () for group in self._scenario.workloads)
        stated = (
            item.toleration_seconds for part in (self._spec.tolerations, *groups) for item in part
        )
        return {SETTINGS.default_toleration_seconds, *(one for one in stated if one is not None)}

    async def _fail(self, time: float, tasks: asyncio.TaskGroup) -> None:
        """Stop, start and report what fails from this time on, or no longer."""
        scenario, lost_before = self._scenario, set(self._simulation.lost)
        lost_now, stopped = (scenario.failing(one, time) for one in ("ClusterLost", "AgentStopped"))
        known = scenario.failing("ClusterLost", time - LEASE_GRACE_SECONDS)
        groups = (group for group in scenario.clusters if group.has_policies)
        watched = {name for group in groups for name in group.members}
        for name, part in self._parts.items():
            lost = name in lost_now
            agent = not lost and name not in stopped
            part.keep(tasks, agent=agent, watcher=name in watched and not lost)
            if lost:
                self._simulation.lost.add(name)
            elif name in lost_before:
                self._simulation.lost.discard(name)
                self._wrote(kinds.POLICY, name, name)
            if lost or name in lost_before:
                cluster = await self._inner.get(kinds.MANAGED_CLUSTER, name)
                now = rfc3339(self._now())
                available = not (lost and name in known)
                await self._apply(report_availability(cluster, available=available, now=now))
        if lost_before != self._simulation.lost:
            await self._look()

    async def _place(self) -> None:
        """Place the workloads as the scenario's controller does."""
        if self._scenario.controller == "Kept":
            await self._apply(
                [Create(kinds.PLACEMENT_OPTIMIZATION, kept_optimization(self._scenario))]
            )
            pause = self._scenario.scoring_interval / LOOKS_PER_ROUND
            keeper = OptimizationController(self._optimizer, read_only=False, least_pause=pause)
            await keeper.run()
        await asyncio.sleep(self._scenario.scoring_interval)  # the first round of every agent
        while True:
            self._arrived.clear()
            await self._post()
            if self._scenario.controller == "Static":
                await self._arrived.wait()
            else:
                await asyncio.sleep(self._scenario.naive_every)

    async def _post(self) -> None:
        """Plan for all workloads that are there, and apply the plan."""
        items = (await self._inner.list(kinds.MANIFEST_WORK_REPLICA_SET, OWN)).items
        names = [{"name": item["metadata"]["name"]} for item in items]
        if not names or not self._reaches(""):
            return
        plan = await self._optimizer.plan(playable(self._spec.request(targetWorkloads=names)))
        if isinstance(plan, Plan) and plan.changes:
            await self._optimizer.apply(plan)

    async def _roll_out(self) -> None:
        """Let the rollout controller work while there are rollouts: it polls."""
        rollouts = self._optimizer.rollouts
        while True:
            await self._recorded.wait()
            self._recorded.clear()
            if going := await rollouts.records.in_progress(OWN):
                work = asyncio.create_task(rollouts.run())
                for record in going:
                    async for _ in rollouts.records.changes(record):
                        pass
                work.cancel()
                await asyncio.wait([work])

    def _counted(self, metric: str, *results: str) -> int:
        """Return how often the optimizer counted these results."""
        name, registry = f"dynamic_scoring_optimizer_{metric}_total", self._optimizer.registry
        return sum(int(registry.get_sample_value(name, {"result": r}) or 0) for r in results)

    def _played(self) -> Played:
        scenario, series = self._scenario, self._series
        stays = self._history.finish(scenario.duration)
        return Outcome(scenario, series, series.worth(self._spec), stays).played(
            controller=scenario.controller,
            seed=self._seed,
            plans=self._counted("solves", "Optimal", "Feasible"),
            applied=self._counted("applies", "Applied", "Begun"),
            toleration_seconds=SETTINGS.default_toleration_seconds,
        )
