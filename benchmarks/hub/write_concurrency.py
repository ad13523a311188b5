"""How fast ManifestWorks are written, and what that costs other clients of the API server.

python -m benchmarks.hub.write_concurrency

The same patches of the same ManifestWorks, by the same client: one at a time (as the reference
controller writes), with 32 in flight, and with the limit that follows the latency, which starts
anew for every measurement. They take turns in every round; the table shows medians of the rounds.
Meanwhile a bystander in a process of its own reads one object every 20 ms: its median latency says
how kind the writes are. When the API server is busy, another process keeps eight requests in
flight.

`--server real` is a kube-apiserver with etcd; `--server stub` answers in a given time, a given
number of requests at once, so that its latency grows with the requests in flight like that of a
small machine.
"""

import argparse
import asyncio
import itertools
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from aiohttp import web

from benchmarks.hub.controller import USER, control_plane, create, serve
from benchmarks.hub.fleet import config, typed
from benchmarks.loopback import serving_answers
from dsf.api.crd.definitions import crds
from dsf.hub.snapshot.summaries_work import summaries_work
from dsf.kube.apply import WriteLimiter, apply
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.client.connect import connect
from dsf.kube.concurrency_limit import ConcurrencyBounds
from dsf.kube.errors import KubeError
from dsf.kube.kinds import CONFIG_MAP, MANIFEST_WORK, NAMESPACE
from dsf.kube.port import Kube
from dsf.kube.resources.ocm import ocm_crds

WAYS = {
    "one": ConcurrencyBounds(1, 1),
    "32": ConcurrencyBounds(32, 32),
    "ours": ConcurrencyBounds(),
}
"""The ways to write: their bounds of the writes in flight."""
AGENT_NAMESPACE = "dynamic-scoring"
SCORERS = 10
"""Scorers whose summaries each ManifestWork carries."""
BYSTANDER = "bystander"
BYSTANDER_SECONDS = 0.02
BUSY_IN_FLIGHT = 8
ALONE_SECONDS = 3.0
"""How long the bystander is measured while we write nothing."""
SETTLE_SECONDS = 3.0
"""Until the other processes have started and connected."""
PROCESSES = multiprocessing.get_context("spawn")


def name_of(number: int) -> str:
    return f"cluster-{number:04}"


def text_of(version: int) -> str:
    """Return summaries as long as those of ten scorers."""
    return json.dumps([{**config(number), "version": version} for number in range(SCORERS)])


def patches(clusters: int, version: int) -> list[Change]:
    """Return one patch for each cluster's ManifestWork."""
    return [
        Patch(
            MANIFEST_WORK,
            "dynamic-scoring-config-manifestwork",
            name,
            {"spec": summaries_work(name, text_of(version), AGENT_NAMESPACE)["spec"]},
        )
        for name in map(name_of, range(clusters))
    ]


async def prepare(kube: Kube, clusters: int) -> None:
    """Create the clusters' namespaces and ManifestWorks, and the bystander's ConfigMap."""
    await serve(kube, [*crds(), *ocm_crds()], [MANIFEST_WORK])
    names = [name_of(number) for number in range(clusters)]
    await create(kube, [Create(NAMESPACE, typed(NAMESPACE, name)) for name in names])
    works = [summaries_work(name, text_of(0), AGENT_NAMESPACE) for name in names]
    await create(kube, [Create(MANIFEST_WORK, work) for work in works])
    maps = [BYSTANDER, *(f"busy-{number}" for number in range(BUSY_IN_FLIGHT))]
    await create(kube, [Create(CONFIG_MAP, typed(CONFIG_MAP, name, names[0])) for name in maps])


# The bystander and the load are processes of their own, so that they do not share an event loop
# with the writes that they measure.


def bystander(kubeconfig: Path, results: Connection, phase: Any, ready: Any) -> None:
    """Read one object again and again; send (phase, seconds) of all reads once the phase is -1."""

    async def read() -> None:
        measured = []
        async with connect(kubeconfig) as kube:
            while (current := phase.value) >= 0:
                started = time.perf_counter()
                await kube.get(CONFIG_MAP, BYSTANDER, name_of(0))
                ready.set()
                measured.append((current, time.perf_counter() - started))
                await asyncio.sleep(BYSTANDER_SECONDS)
        results.send(measured)

    asyncio.run(read())


def load(kubeconfig: Path, phase: Any) -> None:
    """Write and list without a pause until the phase is -1."""

    async def work(kube: Kube, number: int) -> None:
        for version in itertools.count():
            if phase.value < 0:
                return
            try:
                data = {"data": {"version": f"{version} {random.random()}"}}  # noqa: S311
                await kube.patch(CONFIG_MAP, f"busy-{number}", data, name_of(0))
                await kube.list(CONFIG_MAP, name_of(0), limit=10)
            except KubeError:
                await asyncio.sleep(1)

    async def keep_busy() -> None:
        async with connect(kubeconfig) as kube:
            await asyncio.gather(*(work(kube, number) for number in range(BUSY_IN_FLIGHT)))

    asyncio.run(keep_busy())


@dataclass
class Measured:
    """The rounds of one number of clusters under one load: seconds, and bystander's latencies."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    phases: dict[str, list[int]] = field(default_factory=lambda: {way: [] for way in WAYS})
    limits: list[int] = field(default_factory=list)
    alone: int = 0


@contextmanager
def process(target: Any, *arguments: Any) -> Iterator[None]:
    started = PROCESSES.Process(target=target, args=arguments, daemon=True)
    started.start()
    try:
        yield
        started.join(30)
    finally:
        if started.is_alive():
            started.terminate()


async def measure(
    kube: Kube, kubeconfig: Path, arguments: argparse.Namespace, *, busy: bool
) -> None:
    """Measure all ways for each number of clusters, and print a row for each."""
    phase = PROCESSES.Value("i", 0)
    receiving, sending = PROCESSES.Pipe(duplex=False)
    found: dict[int, Measured] = {}
    versions = itertools.count(1)
    phases = itertools.count(1)
    ready = PROCESSES.Event()
    with (
        process(bystander, kubeconfig, sending, phase, ready),
        process(load, kubeconfig, phase) if busy else process(int),
    ):
        await asyncio.to_thread(ready.wait)
        await asyncio.sleep(SETTLE_SECONDS)
        for clusters in arguments.clusters:
            measured = found[clusters] = Measured(alone=next(phases))
            phase.value = measured.alone
            await asyncio.sleep(ALONE_SECONDS)
            for round_ in range(arguments.rounds):
                for way in sorted(WAYS, key=lambda way: (len(way) + round_) % len(WAYS)):
                    phase.value = next(phases)
                    measured.phases[way].append(phase.value)
                    limiter = WriteLimiter(WAYS[way])
                    started = time.perf_counter()
                    outcomes = await apply(kube, patches(clusters, next(versions)), limiter=limiter)
                    measured.seconds[way].append(time.perf_counter() - started)
                    if errors := [each.error for each in outcomes if each.error]:
                        raise RuntimeError(str(errors[0]))
                    if way == "ours":
                        measured.limits.append(limiter.limit)
                    phase.value = 0
                    await asyncio.sleep(0.3)
        phase.value = -1
        latencies = await asyncio.to_thread(receiving.recv)
    by_phase: dict[int, list[float]] = {}
    for number, seconds in latencies:
        by_phase.setdefault(number, []).append(1000 * seconds)
    for clusters, measured in found.items():
        print(row(clusters, measured, by_phase, busy=busy), flush=True)


HEADER = (
    "| clusters | load | one at a time, s | ours, times faster | 32, times faster"
    " | bystander alone, ms | with one | with ours | with 32 | our limit |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def row(clusters: int, measured: Measured, by_phase: dict[int, list[float]], *, busy: bool) -> str:
    def faster(way: str) -> str:
        pairs = zip(measured.seconds["one"], measured.seconds[way], strict=True)
        return f"{statistics.median(one / seconds for one, seconds in pairs):.2f}"

    def latency(phases: Sequence[int]) -> str:
        values = [value for phase in phases for value in by_phase.get(phase, [])]
        return f"{statistics.median(values):.1f}" if values else "-"

    cells = [
        str(clusters),
        "busy" if busy else "idle",
        f"{statistics.median(measured.seconds['one']):.2f}",
        faster("ours"),
        faster("32"),
        latency([measured.alone]),
        *(latency(measured.phases[way]) for way in ("one", "ours", "32")),
        f"{min(measured.limits)}-{max(measured.limits)}",
    ]
    return f"| {' | '.join(cells)} |"


# The stub: what is measured on it depends little on the machine that it runs on.


def stub(port: Connection, service_seconds: float, places: int) -> None:
    """Serve an API server that answers `places` requests at once, each in `service_seconds`."""

    async def serve() -> None:
        free = asyncio.Semaphore(places)

        async def answer(request: web.Request) -> web.Response:
            await request.read()
            async with free:
                await asyncio.sleep(service_seconds)
            return web.json_response({"kind": "Stub", "metadata": {"name": "stub"}, "items": []})

        async with serving_answers(answer) as url:
            port.send(url)
            await asyncio.Event().wait()

    asyncio.run(serve())


@asynccontextmanager
async def stub_server(folder: Path, arguments: argparse.Namespace) -> AsyncIterator[Path]:
    receiving, sending = PROCESSES.Pipe(duplex=False)
    server = PROCESSES.Process(
        target=stub, args=(sending, arguments.service_ms / 1000, arguments.places), daemon=True
    )
    server.start()
    try:
        address = await asyncio.to_thread(receiving.recv)
        kubeconfig = folder / "stub.json"
        kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "stub", "cluster": {"server": address}}],
                    "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "me"}}],
                    "users": [{"name": "me", "user": {}}],
                    "current-context": "stub",
                }
            )
        )
        yield kubeconfig
    finally:
        server.terminate()


async def run(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dsf-bench-"))
    print(HEADER, flush=True)
    if arguments.server == "stub":
        async with stub_server(folder, arguments) as kubeconfig, connect(kubeconfig) as kube:
            for load_name in arguments.loads:
                await measure(kube, kubeconfig, arguments, busy=load_name == "busy")
        return
    with control_plane(folder) as plane:
        kubeconfig = plane.kubeconfig(user=USER, group="system:masters")
        async with connect(kubeconfig) as kube:
            await prepare(kube, max(arguments.clusters))
            for load_name in arguments.loads:
                await measure(kube, kubeconfig, arguments, busy=load_name == "busy")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hub.write_concurrency",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--server", choices=["real", "stub"], default="real")
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", choices=["idle", "busy"], nargs="+", default=["idle", "busy"])
    parser.add_argument("--service-ms", type=float, default=5.0, help="of the stub")
    parser.add_argument("--places", type=int, default=2, help="requests at once of the stub")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
