"""The hub controller's writes, lists, speed and memory against a real kube-apiserver.

python -m benchmarks.hub.controller

- Rate: how fast a change of one scorer reaches every ManifestWork, as a ratio to a loop of
  concurrent patches of the same bytes, by the same client library, on the same API server.
- Writes while nothing changes and after a restart; lists that a restart makes.
- Memory with the largest fleet.

The API server runs without OCM's controllers, which would compete for the same cores.
"""

import argparse
import asyncio
import base64
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from benchmarks.hub.fleet import HUB, config, fleet, scorer, typed
from benchmarks.loopback import serving_answers
from dsf.api.crd.definitions import crds
from dsf.kube.apply import WriteLimiter, apply
from dsf.kube.changes import Change, Create
from dsf.kube.client.connect import connect
from dsf.kube.concurrency_limit import ConcurrencyBounds
from dsf.kube.errors import KubeError
from dsf.kube.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
    NAMESPACE,
    Kind,
)
from dsf.kube.port import Kube, Object
from dsf.kube.resources.ocm import ocm_crds
from tests.real_hub.build import locate
from tests.real_hub.harness.control_plane import ControlPlane, start_etcd
from tests.real_hub.harness.ports import Ports
from tests.real_hub.harness.processes import Processes

WORK = "dynamic-scoring-config-manifestwork"
BARE = "bare-manifestwork"
USER = "benchmarked-controller"
AT_ONCE = 32
"""Patches in flight of the bare loop."""
IN_FLIGHT = ConcurrencyBounds(AT_ONCE, AT_ONCE)
"""Writes in flight that make what is measured."""
ROUNDS = 9
RESYNC_SECONDS = 2
RESYNCS = 4
WRITES = {"create", "update", "patch", "delete"}


@dataclass
class Bench:
    """The API server, the fleet and the client of every measurement."""

    kube: Kube
    plane: ControlPlane
    kubeconfig: Path
    apis: str
    folder: Path


class Controller:
    """`dsf controller` as a process."""

    def __init__(self, bench: Bench) -> None:
        port = bench.plane.ports.free()
        self.url = f"http://127.0.0.1:{port}"
        self._log = (bench.folder / "controller.log").open("a")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dsf", "controller", f"--namespace={HUB}"),
                *(f"--kubeconfig={bench.kubeconfig}", f"--bind-address=127.0.0.1:{port}"),
                *(f"--resync-seconds={RESYNC_SECONDS}", "--log-level=warning"),
            ],
            stdout=self._log,
            stderr=self._log,
        )

    async def metrics(self) -> dict[str, float]:
        """Return every sample by its name and labels; nothing before it serves them."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{self.url}/metrics") as answer,
            ):
                lines = (await answer.text()).splitlines()
        except aiohttp.ClientError:
            if self.process.poll() is not None:
                raise RuntimeError(f"the controller ended: see {self._log.name}") from None
            return {}
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    async def total(self, name: str, *having: str) -> float:
        """Return the sum of a counter's samples whose labels contain the given texts."""
        samples = await self.metrics()
        return sum(
            value
            for sample, value in samples.items()
            if sample.split("{")[0] == name and all(text in sample for text in having)
        )

    def memory_mib(self) -> float:
        """Return the peak of its resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def stop(self) -> None:
        """Stop it by SIGTERM."""
        self.process.terminate()
        self.process.wait(60)
        self._log.close()


@contextmanager
def running(bench: Bench) -> Iterator[Controller]:
    controller = Controller(bench)
    try:
        yield controller
    finally:
        controller.stop()


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    processes, ports, assets = Processes(folder), Ports(), locate()
    try:
        etcd = start_etcd(processes, assets, ports, folder)
        plane = ControlPlane("hub", processes, assets, ports, folder)
        plane.start(etcd)
        plane.wait_ready()
        yield plane
        plane.api.close()
    finally:
        processes.close()


@asynccontextmanager
async def scoring_apis() -> AsyncIterator[str]:
    """Serve healthy scoring APIs at `<url>/<number>/config`."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/healthz":
            return web.Response(text="ok")
        return web.json_response(config(int(request.path.split("/")[1])))

    async with serving_answers(answer) as url:
        yield url


async def create(kube: Kube, changes: Iterable[Change]) -> None:
    for outcome in await apply(kube, changes, limiter=WriteLimiter(IN_FLIGHT)):
        if outcome.error:
            raise RuntimeError(f"{outcome.change}: {outcome.error}")


async def until(holds: Callable[[], Any], every: float = 0.05) -> float:
    """Wait until `await holds()` is true; return the seconds that it took."""
    started = time.perf_counter()
    while not await holds():  # noqa: ASYNC110 - what is waited for is in another process
        await asyncio.sleep(every)
    return time.perf_counter() - started


async def serve(kube: Kube, definitions: Iterable[Object], kinds: Iterable[Kind]) -> None:
    """Create CRDs, and wait until the API server serves some kinds of them."""
    await create(kube, [Create(CUSTOM_RESOURCE_DEFINITION, each) for each in definitions])
    for kind in kinds:

        async def served(kind: Kind = kind) -> bool:
            try:
                await kube.list(kind, limit=1)
            except KubeError:
                return False
            return True

        await until(served)


async def prepare(bench: Bench, clusters: int) -> None:
    kube = bench.kube
    ours = [crd for crd in crds() if crd["spec"]["names"]["kind"].startswith("DynamicScor")]
    kinds = (DYNAMIC_SCORER, MANIFEST_WORK, MANAGED_CLUSTER, MANAGED_CLUSTER_ADD_ON)
    await serve(kube, [*ours, *ocm_crds()], kinds)
    objects = [
        Create(NAMESPACE, typed(NAMESPACE, HUB)),
        Create(
            DYNAMIC_SCORING_CONFIG,
            {**typed(DYNAMIC_SCORING_CONFIG, "dynamic-scoring-config", HUB), "spec": {}},
        ),
        Create(DYNAMIC_SCORER, scorer(0, bench.apis)),
    ]
    await create(kube, [*objects, *fleet(range(clusters))])


async def distributed(bench: Bench, controller: Controller, scorers: int, clusters: int) -> None:
    """Wait until every scorer is on every cluster, and nothing is left to write."""

    async def ready() -> bool:
        found = await bench.kube.get(DYNAMIC_SCORING_CONFIG, "dynamic-scoring-config", HUB)
        status = found.get("status") or {}
        return bool(status.get("scorers") == scorers and status.get("clusters") == clusters)

    await until(ready, every=0.5)
    await quiet(controller)


async def quiet(controller: Controller) -> None:
    """Wait until two resyncs in a row write nothing."""

    async def silent() -> bool:
        before = await controller.total("dsf_hub_writes_total")
        await resynced(controller, 2)
        return await controller.total("dsf_hub_writes_total") == before

    await until(silent)


async def resynced(controller: Controller, times: int) -> None:
    counter = ("dsf_reconcile_total", 'controller="fleet"')
    enough = await controller.total(*counter) + times

    async def passed() -> bool:
        return await controller.total(*counter) >= enough

    await until(passed)


async def changed_rate(bench: Bench, controller: Controller, clusters: int, round_: int) -> float:
    """Return ManifestWorks per second, from a scorer's change to the last write."""
    counter = ("dsf_hub_writes_total", 'kind="ManifestWork"', 'result="ok"')
    enough = await controller.total(*counter) + clusters

    async def reached() -> bool:
        return await controller.total(*counter) >= enough

    params = {"name": "score_0", "interval": 60 + round_}
    body = {"spec": {"scoring": {"params": params}}}
    await bench.kube.patch(DYNAMIC_SCORER, "scorer-0", body, HUB)
    return clusters / await until(reached)


async def bare_works(bench: Bench, clusters: int) -> list[Change]:
    """Return ManifestWorks like ours, under a name that the controller ignores."""
    work = await bench.kube.get(MANIFEST_WORK, WORK, "cluster-0000")
    return [
        Create(
            MANIFEST_WORK,
            {**typed(MANIFEST_WORK, BARE, f"cluster-{number:04}"), "spec": work["spec"]},
        )
        for number in range(clusters)
    ]


async def bare_rate(bench: Bench, clusters: int, round_: int) -> float:
    """Return patches per second of a loop that does nothing else, in a process of its own."""
    work = await bench.kube.get(MANIFEST_WORK, BARE, "cluster-0000")
    text = json.dumps(work["spec"]).replace('Interval\\": ', f'Interval\\": {round_ + 1}')
    body = base64.b64encode(json.dumps({"spec": json.loads(text)}).encode()).decode()
    arguments = [str(bench.kubeconfig), BARE, str(clusters), str(AT_ONCE), body]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.hub.patch_baseline", *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return float(output)


@contextmanager
def paused(controller: Controller) -> Iterator[None]:
    """Pause the controller's process (SIGSTOP), without ending it."""
    controller.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        controller.process.send_signal(signal.SIGCONT)


def calls(plane: ControlPlane, since: int) -> tuple[Counter[str], int]:
    """Return the lists and the writes of each resource in the audit log, from a line on."""
    lists: Counter[str] = Counter()
    writes = 0
    for line in plane.audit_log.read_text().splitlines()[since:]:
        event = json.loads(line)
        if event["user"]["username"] != USER or "objectRef" not in event:
            continue
        if event["verb"] == "list" and "continue=" not in event["requestURI"]:
            lists[event["objectRef"]["resource"]] += 1
        writes += event["verb"] in WRITES and event["objectRef"]["resource"] != "leases"
    return lists, writes


def audited(plane: ControlPlane) -> int:
    return len(plane.audit_log.read_text().splitlines())


async def measure(bench: Bench, clusters: int, most_clusters: int, scorers: int) -> None:
    await prepare(bench, clusters)
    pairs = []
    with running(bench) as controller:
        await distributed(bench, controller, 1, clusters)
        await create(bench.kube, await bare_works(bench, clusters))
        for round_ in range(ROUNDS):
            reached = await changed_rate(bench, controller, clusters, round_)
            await quiet(controller)
            with paused(controller):
                pairs.append((reached, await bare_rate(bench, clusters, round_)))
        before = await controller.total("dsf_hub_writes_total")
        await resynced(controller, RESYNCS)
        unchanged = await controller.total("dsf_hub_writes_total") - before
    line = audited(bench.plane)
    with running(bench) as controller:
        await until(lambda: ready(controller))
        await resynced(controller, RESYNCS)
    lists, restart_writes = calls(bench.plane, line)
    ratio = statistics.median(reached / bare for reached, bare in pairs)
    print(f"{clusters} clusters, 1 scorer changed, {ROUNDS} rounds by turns")
    print(f"  works per second, controller: {numbers(reached for reached, _ in pairs)}")
    print(f"  works per second, bare loop:  {numbers(bare for _, bare in pairs)}")
    print(f"  ratio, median of the rounds: {ratio:.2f}  (wanted: at least 0.80)")
    print(f"writes in {RESYNCS} unchanged resyncs: {unchanged:.0f}  (wanted: 0)")
    print(f"writes after a restart: {restart_writes}  (wanted: 0)")
    print(f"lists after a restart, by kind: {dict(sorted(lists.items()))}  (wanted: 1 each)")
    await create(bench.kube, fleet(range(clusters, most_clusters)))
    more: list[Change] = [
        Create(DYNAMIC_SCORER, scorer(number, bench.apis)) for number in range(1, scorers)
    ]
    await create(bench.kube, more)
    with running(bench) as controller:
        await distributed(bench, controller, scorers, most_clusters)
        memory = controller.memory_mib()
    print(f"{most_clusters} clusters, {scorers} scorers")
    print(f"  most memory resident: {memory:.0f} MiB  (wanted: below 200)")


async def ready(controller: Controller) -> bool:
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{controller.url}/readyz") as answer,
        ):
            return answer.ok
    except aiohttp.ClientError:
        return False


def numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


async def run(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dsf-bench-"))
    with control_plane(folder) as plane:
        kubeconfig = plane.kubeconfig(user=USER, group="system:masters")
        async with connect(plane.admin_kubeconfig) as kube, scoring_apis() as apis:
            bench = Bench(kube, plane, kubeconfig, apis, folder)
            await measure(bench, arguments.clusters, arguments.most_clusters, arguments.scorers)


def counts(description: str | None, **defaults: int) -> argparse.Namespace:
    """Return the counts of the command line, each an option with a default."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    asyncio.run(run(counts(__doc__, clusters=1000, most_clusters=2000, scorers=50)))


if __name__ == "__main__":
    main()
