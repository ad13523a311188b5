"""The development guide's story: score, optimise for performance, then for power."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import httpx

from dsf.api.names import CLUSTER_CLAIM, HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.changes import Create
from dsf.kube.embedded.folder import load
from dsf.sim import mig
from dsf.sim.demo import facts
from dsf.sim.demo.fleet import WORKLOAD_NAMESPACE, Cluster, Fleet, fleet, must
from dsf.sim.demo.processes import (
    Component,
    Components,
    DemoError,
    answering,
    components,
    free_port,
)
from dsf.sim.demo.scorers import scorers, scoring_config
from dsf.sim.demo.screen import Screen
from dsf.sim.policy import ROOT_LABEL
from dsf.sim.replay import Recording, replaying
from dsf.sim.replica_set import OWNER_LABEL
from dsf.sim.simulation import Simulation

POLL_SECONDS = 0.1
STEP_SECONDS = 45.0
STABLE_SECONDS = 1
CLUSTER_SHIFT = 60
SCORES = ("sample-my-score", "example-performance-score", "example-powerconsumption-score")
PREFERENCES = {
    "performance": "example-performance-score",
    "power": "example-powerconsumption-score",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """All that runs while the story is told."""

    fleet: Fleet
    running: Components
    optimizer_url: str
    screen: Screen


async def tell(screen: Screen, work_dir: Path, *, port: int, keep: bool) -> None:
    """Tell the story; DemoError names the step that failed. With `keep` stay until cancelled."""
    async with _stage(screen, work_dir, port) as stage:
        answers = await _acts(stage)
        screen.step("Results")
        screen.show([facts.comparison(answers)])
        screen.finish({name: _result(answer) for name, answer in answers.items()})
        _what_next(stage, keep=keep)
        if keep:
            await _stay(stage)


async def _acts(stage: Stage) -> dict[str, dict[str, Any]]:
    await _score(stage)
    answers = {}
    for number, (name, score) in enumerate(PREFERENCES.items()):
        if number:
            await _reset(stage)
        answers[name] = await _optimize(stage, name, score)
        await _comply(stage)
        await _land(stage)
    return answers


@asynccontextmanager
async def _stage(screen: Screen, work_dir: Path, port: int) -> AsyncIterator[Stage]:
    async with contextlib.AsyncExitStack() as stack:
        screen.step("A hub and two managed clusters, in memory and over HTTP")
        the_fleet = await stack.enter_async_context(fleet(work_dir))
        for cluster in (the_fleet.hub, *the_fleet.workers):
            screen.note(f"{cluster.name} at {cluster.url}")
        managed = {worker.name: worker.kube for worker in the_fleet.workers}
        simulation = Simulation(the_fleet.hub.kube, managed, now=lambda: datetime.now(UTC))
        await stack.enter_async_context(_background(simulation.run()))
        screen.step("Components, each a process of its own")
        running = await stack.enter_async_context(components(work_dir))
        recording = Recording.load(_scenario() / "recording.json")
        prometheus = {
            worker.name: await stack.enter_async_context(
                replaying(
                    recording,
                    labels={"node": f"{worker.name}-control-plane"},
                    shift=index * CLUSTER_SHIFT,
                )
            )
            for index, worker in enumerate(the_fleet.workers)
        }
        stage = Stage(the_fleet, running, f"http://127.0.0.1:{port}", screen)
        await _start(stage, prometheus, port)
        yield stage


async def _start(stage: Stage, prometheus: dict[str, str], port: int) -> None:
    """Start everything at once and wait until all of it answers."""
    running, hub = stage.running, str(stage.fleet.hub.kubeconfig)
    sample_port, static_port = free_port(), free_port()
    wanted: list[tuple[Component, str]] = []

    async def start(
        name: str, url: str, *arguments: str, env: dict[str, str] | None = None
    ) -> None:
        component = await running.start(name, arguments, env)
        wanted.append((component, url))
        stage.screen.note(f"{name}: python -m {' '.join(arguments)}")

    sample_url, static_url = (f"http://127.0.0.1:{number}" for number in (sample_port, static_port))
    for name, module, number, url in (
        ("sample-scorer", "sample_scorers.sample", sample_port, sample_url),
        ("static-scorer", "sample_scorers.static", static_port, static_url),
    ):
        await start(name, f"{url}/healthz", module, "--port", str(number))
    metrics = free_port()
    await start(
        "controller",
        f"http://127.0.0.1:{metrics}/readyz",
        "dsf",
        "controller",
        f"--kubeconfig={hub}",
        f"--namespace={HUB_NAMESPACE}",
        "--resync-seconds=2",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
    )
    for worker in stage.fleet.workers:
        await _start_on(stage, worker, prometheus[worker.name], start)
    await start(
        "optimizer",
        f"{stage.optimizer_url}/readyz",
        "dsf",
        "optimizer",
        f"--kubeconfig={hub}",
        f"--port={port}",
    )
    await must(
        stage.fleet.hub.kube,
        [
            *(Create(kinds.DYNAMIC_SCORER, obj) for obj in scorers(sample_url, static_url)),
            Create(kinds.DYNAMIC_SCORING_CONFIG, scoring_config()),
        ],
    )
    deadline = asyncio.get_running_loop().time() + STEP_SECONDS
    for component, url in wanted:
        await answering(component, url, deadline=deadline)


async def _start_on(
    stage: Stage, worker: Cluster, prometheus: str, start: Callable[..., Awaitable[None]]
) -> None:
    agent, watcher = free_port(), free_port()
    await start(
        f"agent-{worker.name}",
        f"http://127.0.0.1:{agent}/healthz",
        "dsf",
        "agent",
        f"--cluster-name={worker.name}",
        f"--hub-kubeconfig={stage.fleet.hub.kubeconfig}",
        f"--kubeconfig={worker.kubeconfig}",
        f"--prometheus-url={prometheus}",
        f"--metrics-bind-address=127.0.0.1:{agent}",
    )
    await start(
        f"policy-watcher-{worker.name}",
        f"http://127.0.0.1:{watcher}/healthz",
        "dsf",
        "policy-watcher",
        f"--kubeconfig={worker.kubeconfig}",
        f"--metrics-bind-address=127.0.0.1:{watcher}",
        env={
            "POLL_INTERVAL_SEC": "1",
            "STABLE_DURATION_SEC": str(STABLE_SECONDS),
            "WATCH_NAMESPACE": worker.name,
        },
    )


async def _score(stage: Stage) -> None:
    stage.screen.step("Agents read time series, call the scoring APIs, publish scores")
    names = [worker.name for worker in stage.fleet.workers]

    async def scored() -> bool:
        listed = (await stage.fleet.hub.kube.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
        found = {
            (obj["metadata"]["namespace"], obj["metadata"]["name"])
            for obj in listed
            if obj.get("status", {}).get("scores")
        }
        return {(cluster, score) for cluster in names for score in SCORES} <= found

    await _until(stage, scored, "scores of every scorer on every cluster")
    listed = (await stage.fleet.hub.kube.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
    stage.screen.show(facts.score_tables(listed, names))


async def _optimize(stage: Stage, name: str, score: str) -> dict[str, Any]:
    stage.screen.step(f"POST /optimize for {name}: {score}")
    if name == next(iter(PREFERENCES)):
        await load(stage.fleet.hub.kube, _scenario() / "manifests")
    request = json.loads((_scenario() / "params.json").read_text(encoding="utf-8"))
    request["preference"] = {**request["preference"], "addonPlacementScore": score}
    answer = await _post(stage, "/optimize", request)
    stage.screen.note(f"{answer['status']}, objective {answer['objective_value']:g}")
    stage.screen.show(facts.plan_tables(answer))
    return answer


async def _comply(stage: Stage) -> None:
    stage.screen.step("Policies are enforced; workloads wait until they are compliant for a while")
    await _until(stage, _claims(stage, "noncompliant"), "clusters to report noncompliant")
    await _show_compliance(stage)
    stage.screen.note("the stand-in for the GPU operator finishes configuring MIG")
    for worker in stage.fleet.workers:
        for node in (await worker.kube.list(kinds.NODE)).items:
            await must(worker.kube, mig.finish(node))
    await _until(stage, _claims(stage, "compliant"), "clusters to report compliant")
    await _show_compliance(stage)


async def _land(stage: Stage) -> None:
    stage.screen.step("Workloads land")
    hub = stage.fleet.hub.kube

    async def landed() -> bool:
        sets = (await hub.list(kinds.MANIFEST_WORK_REPLICA_SET)).items
        states = await _workloads(stage)
        return len(states) == len(sets) and all(state.delivered for state in states)

    await _until(stage, landed, "workloads to be delivered")
    placements = (await hub.list(kinds.PLACEMENT, WORKLOAD_NAMESPACE)).items
    stage.screen.show(
        [facts.placement_table(placements), facts.workload_table(await _workloads(stage))]
    )


async def _reset(stage: Stage) -> None:
    stage.screen.step("POST /reset: nothing generated is left")
    answer = await _post(stage, "/reset", {"namespace": WORKLOAD_NAMESPACE})
    stage.screen.note(f"deleted {len(answer['deleted'])}, failed {len(answer['failed'])}")
    for worker in stage.fleet.workers:
        for node in (await worker.kube.list(kinds.NODE)).items:
            await must(worker.kube, mig.start(node))
    await _until(stage, _claims(stage, "empty"), "clusters to report empty")


def _claims(stage: Stage, value: str) -> Callable[[], Awaitable[bool]]:
    async def reached() -> bool:
        claims = await _claim_values(stage)
        return all(claims.get(worker.name) == value for worker in stage.fleet.workers)

    return reached


async def _claim_values(stage: Stage) -> dict[str, str]:
    clusters = (await stage.fleet.hub.kube.list(kinds.MANAGED_CLUSTER)).items
    return {
        cluster["metadata"]["name"]: claim["value"]
        for cluster in clusters
        for claim in cluster.get("status", {}).get("clusterClaims") or []
        if claim["name"] == CLUSTER_CLAIM
    }


async def _show_compliance(stage: Stage) -> None:
    replicas = (await stage.fleet.hub.kube.list(kinds.POLICY, labels=ROOT_LABEL)).items
    states = facts.policy_states(replicas)
    stage.screen.show([facts.policy_table(states, await _claim_values(stage))])


async def _workloads(stage: Stage) -> list[facts.WorkloadState]:
    works = (await stage.fleet.hub.kube.list(kinds.MANIFEST_WORK, labels=OWNER_LABEL)).items
    return [
        facts.WorkloadState(
            work["metadata"]["name"],
            work["metadata"]["namespace"],
            any(
                condition["type"] == "Available" and condition["status"] == "True"
                for condition in work.get("status", {}).get("conditions") or []
            ),
        )
        for work in works
    ]


async def _until(stage: Stage, reached: Callable[[], Awaitable[bool]], what: str) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STEP_SECONDS
    while not await reached():
        stage.running.check()
        if loop.time() > deadline:
            raise DemoError(f"waited {STEP_SECONDS:g} s in vain for {what}")
        await asyncio.sleep(POLL_SECONDS)


async def _post(stage: Stage, path: str, body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=STEP_SECONDS) as client:
        try:
            response = await client.post(stage.optimizer_url + path, json=body)
        except httpx.HTTPError as error:
            raise DemoError(f"POST {path}: {type(error).__name__}: {error}") from error
    if not response.is_success:
        raise DemoError(f"POST {path} answered {response.status_code}: {response.text}")
    answer: dict[str, Any] = response.json()
    return answer


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    kept = ("status", "objective_value", "policies", "placements", "unplaced", "digest")
    return {key: answer[key] for key in kept}


def _what_next(stage: Stage, *, keep: bool) -> None:
    screen, hub = stage.screen, stage.fleet.hub
    screen.step("What to try next" if keep else "What to try next (make demo ARGS=--keep)")
    screen.note(f"the API docs: {stage.optimizer_url}/docs")
    screen.note(
        f"the hub: kubectl --kubeconfig {hub.kubeconfig} get ds,dsc,addonplacementscores -A"
    )
    screen.note(f"an assistant: connect it to {stage.optimizer_url}/mcp")


async def _stay(stage: Stage) -> None:
    stage.screen.note("everything stays up; Ctrl-C ends it")
    while True:
        stage.running.check()
        await asyncio.sleep(1)


@asynccontextmanager
async def _background(work: Any) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _scenario() -> Path:
    return Path(str(resources.files("dsf.sim") / "scenario"))
