"""A demo as it runs: started until all components answer, asked step by step, and kept up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.changes import Create
from dsf.kube.clock import utc_now
from dsf.kube.port import Object
from dsf.sim.demo.clusters import DemoCluster, DemoClusters, apply_or_fail, serving_clusters
from dsf.sim.demo.output import DemoOutput
from dsf.sim.demo.processes import (
    DemoError,
    DemoProcesses,
    free_port,
    running_processes,
    wait_until_healthy,
)
from dsf.sim.demo.scorers import DemoSetup, scoring_config
from dsf.sim.simulation import Simulation

START_SECONDS = 180.0
"""Seconds until every component must answer: far above what a busy machine needs."""

NAMED_CLUSTERS = 3
"""Managed clusters that are told one by one."""

STABLE_SECONDS = 1
"""The policy watcher's stable window; short, so that the demo does not keep people waiting."""


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """Everything that runs during a demo."""

    clusters: DemoClusters
    simulation: Simulation
    processes: DemoProcesses
    optimizer_url: str
    output: DemoOutput


@dataclass(frozen=True, slots=True)
class _Program:
    """A component: its `python -m` arguments, and the URL where it answers 200 once it is ready."""

    name: str
    arguments: tuple[str, ...]
    url: str


@asynccontextmanager
async def running_demo(
    setup: DemoSetup, output: DemoOutput, work_dir: Path, port: int
) -> AsyncIterator[RunningDemo]:
    """Start everything and wait until all of it answers; stop it at the end.

    Callers of the optimizer may write until `refuse_writes`.
    """
    async with contextlib.AsyncExitStack() as stack:
        output.step(setup.title)
        serving = serving_clusters(work_dir, setup.cluster_labels, setup.node)
        clusters = await stack.enter_async_context(serving)
        for cluster in (clusters.hub, *clusters.managed[:NAMED_CLUSTERS]):
            output.note(f"{cluster.name} at {cluster.url}")
        managed = {cluster.name: cluster.kube for cluster in clusters.managed}
        simulation = Simulation(clusters.hub.kube, managed, now=utc_now)
        await stack.enter_async_context(_background(simulation.run))
        prometheus = await stack.enter_async_context(setup.prometheus())
        authors = await setup.authors(prometheus) if setup.authors else []
        running = await stack.enter_async_context(running_processes(work_dir))
        url = f"http://127.0.0.1:{port}"
        demo = RunningDemo(clusters, simulation, running, url, output)
        output.step("Components, each a process of its own")
        await _start(demo, setup, prometheus, authors)
        yield demo


async def refuse_writes(demo: RunningDemo) -> None:
    """Start the optimizer again, read-only."""
    program = _optimizer(demo)
    await demo.processes.stop_one(program.name)
    component = await demo.processes.start(program.name, program.arguments)
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    await wait_until_healthy(component, program.url, deadline=deadline)


async def _start(
    demo: RunningDemo, setup: DemoSetup, prometheus: Mapping[str, str], authors: list[Object]
) -> None:
    managed = demo.clusters.managed
    agents = managed if setup.agent_processes else ()
    scorers = {name: _scorer(name, options) for name, options in setup.scorers.items()}
    programs = [
        *scorers.values(),
        _controller(demo.clusters.hub, setup.manifest_namespaces),
        *(_agent(demo.clusters.hub, w, prometheus[w.name], setup) for w in agents),
        *(_policy_watcher(cluster) for cluster in managed if setup.policy_watchers),
        _optimizer(demo, "--allow-writes", *setup.optimizer_options),
    ]
    started = []
    for program in programs:
        component = await demo.processes.start(program.name, program.arguments)
        started.append((component, program.url))
        demo.output.note(f"{program.name} (log: {component.log})")
    urls = {name: one.url.removesuffix("/healthz") for name, one in scorers.items()}
    registered = setup.registered(urls) + authors
    await apply_or_fail(
        demo.clusters.hub.kube,
        [
            *(Create(kinds.DYNAMIC_SCORER, obj) for obj in registered),
            Create(kinds.DYNAMIC_SCORING_CONFIG, scoring_config()),
        ],
    )
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    for component, url in started:
        await wait_until_healthy(component, url, deadline=deadline)


def _scorer(name: str, options: tuple[str, ...]) -> _Program:
    port = free_port()
    arguments = (f"sample_scorers.{name}", "--port", str(port), *options)
    return _Program(
        f"{name.partition('.')[0]}-scorer", arguments, f"http://127.0.0.1:{port}/healthz"
    )


def _controller(hub: DemoCluster, manifest_namespaces: Iterable[str]) -> _Program:
    return _serving(
        "controller",
        "controller",
        f"--kubeconfig={hub.kubeconfig}",
        f"--namespace={HUB_NAMESPACE}",
        "--resync-seconds=2",
        "--probe-period-seconds=2",
        *(f"--manifest-namespace={name}" for name in manifest_namespaces),
    )


def _agent(hub: DemoCluster, cluster: DemoCluster, prometheus: str, setup: DemoSetup) -> _Program:
    return _serving(
        f"agent-{cluster.name}",
        "agent",
        f"--cluster-name={cluster.name}",
        f"--hub-kubeconfig={hub.kubeconfig}",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--prometheus-url={prometheus}",
        "--inventory" if setup.inventories else "--no-inventory",
    )


def _policy_watcher(cluster: DemoCluster) -> _Program:
    return _serving(
        f"policy-watcher-{cluster.name}",
        "policy-watcher",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--watch-namespace={cluster.name}",
        "--poll-interval-sec=1",
        f"--stable-duration-sec={STABLE_SECONDS}",
    )


def _serving(name: str, *arguments: str) -> _Program:
    bind = f"127.0.0.1:{free_port()}"
    command = ("dsf", *arguments, f"--metrics-bind-address={bind}")
    return _Program(name, command, f"http://{bind}/healthz")


def _optimizer(demo: RunningDemo, *more: str) -> _Program:
    kubeconfig = f"--kubeconfig={demo.clusters.hub.kubeconfig}"
    port = f"--port={httpx.URL(demo.optimizer_url).port}"
    arguments = ("dsf", "optimizer", kubeconfig, port, "--auth=none", *more)
    return _Program("optimizer", arguments, f"{demo.optimizer_url}/readyz")


@asynccontextmanager
async def _background(work: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run `work` until the context ends; if it fails, the context fails at once."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work())
        yield
        task.cancel()


POLL_SECONDS = 0.1
"""Seconds between two looks at the hub."""

STAY_SECONDS = 1.0
"""Seconds between two looks at a demo that stays up."""

STEP_SECONDS = 120.0
"""Seconds that one step may take: far above what a busy machine needs."""


async def until(demo: RunningDemo, reached: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until something is reached; raise DemoError after STEP_SECONDS, saying `what`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STEP_SECONDS
    while not await reached():
        demo.processes.check()
        if loop.time() > deadline:
            raise DemoError(f"waited {STEP_SECONDS:g} s for {what}; see the log files named above")
        await asyncio.sleep(POLL_SECONDS)


async def get(demo: RunningDemo, path: str) -> dict[str, Any]:
    """Return the optimizer's answer; raise DemoError unless it is a success."""
    return await _call(demo, "GET", path)


async def post(demo: RunningDemo, path: str, body: Any) -> dict[str, Any]:
    """Return the optimizer's answer; raise DemoError unless it is a success."""
    return await _call(demo, "POST", path, json=body)


async def get_text(demo: RunningDemo, path: str) -> str:
    """Return the optimizer's answer as text; raise DemoError unless it is a success."""
    return (await _answer(demo, "GET", path)).text


async def _call(demo: RunningDemo, method: str, path: str, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = (await _answer(demo, method, path, **body)).json()
    return answer


async def _answer(demo: RunningDemo, method: str, path: str, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=STEP_SECONDS) as client:
        try:
            response = await client.request(method, demo.optimizer_url + path, **body)
        except httpx.HTTPError as error:
            raise DemoError(f"{method} {path}: {type(error).__name__}: {error}") from error
    if not response.is_success:
        raise DemoError(f"{method} {path} answered {response.status_code}: {response.text}")
    return response


def what_next(demo: RunningDemo, keeping: str) -> None:
    """Tell how to look around; `keeping` is the command that keeps it all up, empty if it stays."""
    output, hub = demo.output, demo.clusters.hub
    output.step("What to try next")
    if keeping:
        output.note(f"with {keeping} all of it stays up; then:")
    output.note(f"the API docs: {demo.optimizer_url}/docs")
    output.note(
        f"the hub: kubectl --kubeconfig {hub.kubeconfig} get dynamicscorers,addonplacementscores -A"
    )
    for cluster in demo.clusters.managed[:NAMED_CLUSTERS]:
        output.note(
            f"{cluster.name}: kubectl --kubeconfig {cluster.kubeconfig} get nodes,configmaps -A"
        )


async def stay(
    demo: RunningDemo, work: Callable[[RunningDemo], Awaitable[None]] | None = None
) -> None:
    """Keep everything up until cancelled, and do `work` again and again."""
    demo.output.note("everything stays up; Ctrl-C ends it")
    while True:
        demo.processes.check()
        if work is not None:
            await work(demo)
        await asyncio.sleep(STAY_SECONDS)
