"""The demo's stage: fleet, simulated OCM, scorers, and all components, up and answering."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.changes import Create
from dsf.sim.demo.fleet import Cluster, Fleet, fleet, must
from dsf.sim.demo.processes import Components, answering, components, free_port
from dsf.sim.demo.scorers import scorers, scoring_config
from dsf.sim.demo.screen import Screen
from dsf.sim.replay import Recording, replaying
from dsf.sim.simulation import Simulation

START_SECONDS = 180.0
STABLE_SECONDS = 1
CLUSTER_SHIFT = 60


@dataclass(frozen=True, slots=True)
class Stage:
    """All that runs while the story is told."""

    fleet: Fleet
    running: Components
    optimizer_url: str
    screen: Screen


@dataclass(frozen=True, slots=True)
class _Program:
    """A component to be started: arguments of `python -m`, and where it answers once it is up."""

    name: str
    arguments: tuple[str, ...]
    url: str


@asynccontextmanager
async def set_stage(screen: Screen, work_dir: Path, port: int) -> AsyncIterator[Stage]:
    """Start everything, wait until all of it answers, and stop it at the end."""
    async with contextlib.AsyncExitStack() as stack:
        screen.step("A hub and two managed clusters, in memory and over HTTP")
        the_fleet = await stack.enter_async_context(fleet(work_dir))
        for cluster in (the_fleet.hub, *the_fleet.workers):
            screen.note(f"{cluster.name} at {cluster.url}")
        managed = {worker.name: worker.kube for worker in the_fleet.workers}
        simulation = Simulation(the_fleet.hub.kube, managed, now=lambda: datetime.now(UTC))
        await stack.enter_async_context(_background(simulation.run))
        prometheus = await _prometheus(the_fleet, stack)
        running = await stack.enter_async_context(components(work_dir))
        stage = Stage(the_fleet, running, f"http://127.0.0.1:{port}", screen)
        screen.step("Components, each a process of its own")
        await _start(stage, prometheus, port)
        yield stage


def scenario() -> Path:
    """Return the folder of the development guide's manifests and request."""
    return Path(str(resources.files("dsf.sim") / "scenario"))


async def _prometheus(the_fleet: Fleet, stack: contextlib.AsyncExitStack) -> dict[str, str]:
    recording = Recording.load(Path(str(resources.files("dsf.sim") / "recording.json")))
    return {
        worker.name: await stack.enter_async_context(
            replaying(
                recording,
                labels={"node": f"{worker.name}-control-plane"},
                shift=index * CLUSTER_SHIFT,
            )
        )
        for index, worker in enumerate(the_fleet.workers)
    }


async def _start(stage: Stage, prometheus: Mapping[str, str], port: int) -> None:
    sample, static = _scorer("sample"), _scorer("static")
    programs = [
        sample,
        static,
        _controller(stage.fleet.hub),
        *(_agent(stage.fleet.hub, w, prometheus[w.name]) for w in stage.fleet.workers),
        *(_policy_watcher(worker) for worker in stage.fleet.workers),
        _optimizer(stage, port),
    ]
    started = []
    for program in programs:
        component = await stage.running.start(program.name, program.arguments)
        started.append((component, program.url))
        stage.screen.note(f"{program.name} (log: {component.log})")
    registered = scorers(_server(sample), _server(static))
    await must(
        stage.fleet.hub.kube,
        [
            *(Create(kinds.DYNAMIC_SCORER, obj) for obj in registered),
            Create(kinds.DYNAMIC_SCORING_CONFIG, scoring_config()),
        ],
    )
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    for component, url in started:
        await answering(component, url, deadline=deadline)


def _scorer(name: str) -> _Program:
    port = free_port()
    arguments = (f"sample_scorers.{name}", "--port", str(port))
    return _Program(f"{name}-scorer", arguments, f"http://127.0.0.1:{port}/healthz")


def _server(scorer: _Program) -> str:
    return scorer.url.removesuffix("/healthz")


def _controller(hub: Cluster) -> _Program:
    return _serving(
        "controller",
        "controller",
        f"--kubeconfig={hub.kubeconfig}",
        f"--namespace={HUB_NAMESPACE}",
        "--resync-seconds=2",
    )


def _agent(hub: Cluster, worker: Cluster, prometheus: str) -> _Program:
    return _serving(
        f"agent-{worker.name}",
        "agent",
        f"--cluster-name={worker.name}",
        f"--hub-kubeconfig={hub.kubeconfig}",
        f"--kubeconfig={worker.kubeconfig}",
        f"--prometheus-url={prometheus}",
    )


def _policy_watcher(worker: Cluster) -> _Program:
    return _serving(
        f"policy-watcher-{worker.name}",
        "policy-watcher",
        f"--kubeconfig={worker.kubeconfig}",
        f"--watch-namespace={worker.name}",
        "--poll-interval-sec=1",
        f"--stable-duration-sec={STABLE_SECONDS}",
    )


def _serving(name: str, *arguments: str) -> _Program:
    bind = f"127.0.0.1:{free_port()}"
    command = ("dsf", *arguments, f"--metrics-bind-address={bind}")
    return _Program(name, command, f"http://{bind}/healthz")


def _optimizer(stage: Stage, port: int) -> _Program:
    kubeconfig = stage.fleet.hub.kubeconfig
    arguments = ("dsf", "optimizer", f"--kubeconfig={kubeconfig}", f"--port={port}")
    return _Program("optimizer", arguments, f"{stage.optimizer_url}/readyz")


@asynccontextmanager
async def _background(work: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Do work until the context ends; where the work fails, the context does at once."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work())
        yield
        task.cancel()
