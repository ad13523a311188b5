"""What fleets of different sizes cost on a real kube-apiserver.

python -m benchmarks.hub.fleet_sizes [--clusters 100 300 1000] [--rounds 3]

With REFERENCE, the path or the command line of another controller, both take turns in each round;
`{kubeconfig}` in it stands for the file, which otherwise is its last argument. Both are users whom
API Priority and Fairness limits, and none elects a leader. What they write and when is read from
the API server's audit log, so that nobody is watched at their cost. A bystander in a process of its
own reads one object every 20 ms.

Each size has an API server and an etcd of its own. Clusters are made by 32 creates at a time.
"""

import argparse
import asyncio
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from benchmarks.agent.load import cpu, peak_mib
from benchmarks.hub.controller import IN_FLIGHT, Bench, control_plane, create, prepare, until
from benchmarks.hub.fleet import HUB, config, scorer, typed
from benchmarks.hub.write_concurrency import (
    ALONE_SECONDS,
    BYSTANDER,
    PROCESSES,
    SETTLE_SECONDS,
    bystander,
    name_of,
    process,
)
from benchmarks.loopback import serving_answers
from dsf.kube.apply import WriteLimiter, apply
from dsf.kube.changes import Create, Delete
from dsf.kube.client.connect import connect
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, MANIFEST_WORK, Kind

ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
GROUP = "measured-controllers"
WORK = "dynamic-scoring-config-manifestwork"
OURS, REFERENCE = "ours", "reference"
START_SECONDS = 8.0
"""A controller that has written no work for so long has started, or is done."""
REST_SECONDS = 30.0
LONGEST_SECONDS = 900.0
SUCCESS = range(200, 300)
"""The statuses of writes that were done."""
ROWS = {
    "new scorer, s": "a new DynamicScorer, until all works are written",
    "distribution, s": "a changed spec of it, which needs no fetch, until all works are written",
    "change, s": "the first fetch of a changed /config, until all works are written",
    "seen after, s": "a changed /config, until it is fetched",
    "restart, first write, s": "start after SIGKILL and a changed spec, until the first work is",
    "restart, all, s": "the same, until all are",
    "bystander p50, ms": "while the spec and the config that changed are distributed",
    "bystander p99, ms": "the same",
    "writes besides works": "of a new scorer and both changes: statuses and Events",
    "CPU of a change, s": "of the controller",
    "CPU of a minute at rest, s": "of the controller",
    "memory, MiB": "the peak of its resident set",
}


@dataclass
class ScoringApi:
    """Serves a config with an interval that the benchmark changes; notes when it is fetched."""

    interval: int = 30
    fetched: dict[int, float] = field(default_factory=dict)

    async def answer(self, request: web.Request) -> web.Response:
        if request.path.endswith("/healthz"):
            return web.Response(text="ok")
        self.fetched.setdefault(self.interval, time.time())
        found = config(1)
        found["scoring"]["params"]["interval"] = self.interval
        return web.json_response(found)


class AuditedWrites:
    """The writes of one user since `mark`, from the audit log of the API server."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user
        self._offset = 0
        self.works: dict[str, float] = {}
        """When the work of each cluster was written last."""
        self.first: float | None = None
        self.last: float | None = None
        self.others = 0

    def mark(self) -> None:
        """Forget what was written before."""
        self.read()
        self.works, self.first, self.others = {}, None, 0

    def read(self) -> None:
        """Read what was written since the last call."""
        with self._log.open("rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._take(line)

    def _take(self, line: bytes) -> None:
        # Most lines are of others: parse only what may be of this user.
        if self._user.encode() not in line:
            return
        event = json.loads(line)
        status = (event.get("responseStatus") or {}).get("code", 0)
        written = event["verb"] in ("create", "update", "patch") and status in SUCCESS
        if event["user"]["username"] != self._user or not written or "objectRef" not in event:
            return
        about = event["objectRef"]
        if about["resource"] != "manifestworks":
            self.others += about["resource"] != "leases"
            return
        at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
        self.first, self.last = self.first or at, at
        self.works[about["namespace"]] = at

    async def quiet(self) -> None:
        """Wait until nothing was written for START_SECONDS."""
        while True:
            last = self.last
            await asyncio.sleep(START_SECONDS)
            self.read()
            if last == self.last:
                return

    async def all(self, clusters: int) -> float:
        """Wait until the works of all clusters were written; return when the last one was."""

        async def complete() -> bool:
            self.read()
            return len(self.works) >= clusters

        async with asyncio.timeout(LONGEST_SECONDS):
            await until(complete, every=0.2)
        return max(self.works.values())


@dataclass
class Measured:
    """A controller that is measured: its command line, and the figures of its rounds by row."""

    name: str
    command: Sequence[str]
    writes: AuditedWrites
    log: Path
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    phases: list[int] = field(default_factory=list)

    def note(self, row: str, value: float) -> None:
        self.figures[row].append(value)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        with self.log.open("ab") as log:
            program = subprocess.Popen(self.command, stdout=log, stderr=log)
        try:
            yield program
        finally:
            program.terminate()
            program.wait(60)

    def kill(self, program: "subprocess.Popen[bytes]") -> None:
        program.send_signal(signal.SIGKILL)
        program.wait(60)


async def round_(
    bench: Bench, measured: Measured, api: ScoringApi, clusters: int, phase: Any
) -> None:
    """Measure one life of a controller, and remove what it distributed."""
    kube, writes = bench.kube, measured.writes
    with measured.running() as program:
        await writes.quiet()
        writes.mark()
        created = time.time()
        await create(kube, [Create(DYNAMIC_SCORER, scorer(1, bench.apis))])
        measured.note("new scorer, s", await writes.all(clusters) - created)
        await writes.quiet()
        others = writes.others
        writes.mark()
        phase.value = measured.phases[-1]
        changed = await change_spec(bench, "${node};${meta}")
        measured.note("distribution, s", await writes.all(clusters) - changed)
        phase.value = 0
        await writes.quiet()
        others += writes.others
        writes.mark()
        before = cpu(program.pid)
        api.interval += 1
        changed = time.time()
        await until(lambda: fetched(api), every=0.01)
        phase.value = measured.phases[-1]
        measured.note("change, s", await writes.all(clusters) - api.fetched[api.interval])
        phase.value = 0
        measured.note("seen after, s", api.fetched[api.interval] - changed)
        measured.note("CPU of a change, s", cpu(program.pid) - before)
        await writes.quiet()
        measured.note("writes besides works", others + writes.others)
        measured.note("memory, MiB", peak_mib(program.pid))
        before, began = cpu(program.pid), time.time()
        await asyncio.sleep(REST_SECONDS)
        rested = time.time() - began
        measured.note("CPU of a minute at rest, s", (cpu(program.pid) - before) * 60 / rested)
        measured.kill(program)
    writes.mark()
    await change_spec(bench, "${node};${device}")
    started = time.time()
    with measured.running():
        last = await writes.all(clusters)
        measured.note("restart, first write, s", (writes.first or last) - started)
        measured.note("restart, all, s", last - started)
    await remove(bench, clusters)


async def change_spec(bench: Bench, dimensions: str) -> float:
    """Change what the works carry of the scorer's own spec; return when."""
    changed = time.time()
    spec = {"scoreDimensionFormat": dimensions}
    await bench.kube.patch(DYNAMIC_SCORER, "scorer-1", {"spec": spec}, HUB)
    return changed


async def fetched(api: ScoringApi) -> bool:
    return api.interval in api.fetched


async def remove(bench: Bench, clusters: int) -> None:
    """Delete the scorer and the works, past finalizers of nobody."""
    changes = [
        Delete(DYNAMIC_SCORER, "scorer-1", HUB),
        *(Delete(MANIFEST_WORK, WORK, name_of(number)) for number in range(clusters)),
    ]
    for outcome in await apply(bench.kube, changes, limiter=WriteLimiter(IN_FLIGHT)):
        if outcome.error:
            raise RuntimeError(f"{outcome.change}: {outcome.error}")


async def measure(clusters: int, rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dsf-bench-"))
    api = ScoringApi()
    phase, ready = PROCESSES.Value("i", 0), PROCESSES.Event()
    receiving, sending = PROCESSES.Pipe(duplex=False)
    with control_plane(folder) as plane:
        async with connect(plane.admin_kubeconfig) as kube, serving_answers(api.answer) as apis:
            bench = Bench(kube, plane, plane.admin_kubeconfig, apis, folder)
            began = time.time()
            await prepare(bench, clusters)
            await kube.delete(DYNAMIC_SCORER, "scorer-0", HUB)
            await create(kube, [Create(ROLE_BINDING, administrators())])
            await create(kube, [Create(CONFIG_MAP, typed(CONFIG_MAP, BYSTANDER, name_of(0)))])
            print(f"\n{clusters} clusters, made in {time.time() - began:.0f} s", flush=True)
            controllers = [measured_controller(bench, name) for name in names()]
            with process(bystander, plane.admin_kubeconfig, sending, phase, ready):
                await asyncio.to_thread(ready.wait)
                await asyncio.sleep(SETTLE_SECONDS)
                phase.value = 1
                await asyncio.sleep(ALONE_SECONDS)
                phase.value = 0
                for number in range(rounds):
                    for place, measured in enumerate(controllers):
                        measured.phases.append(2 + len(controllers) * number + place)
                        await round_(bench, measured, api, clusters, phase)
                phase.value = -1
                latencies = await asyncio.to_thread(receiving.recv)
    show(controllers, latencies)


def names() -> list[str]:
    return [OURS, *([REFERENCE] if os.environ.get("REFERENCE") else [])]


def administrators() -> dict[str, Any]:
    """Let the measured controllers do everything, without the exemption of system:masters."""
    api = ROLE_BINDING.group
    return {
        **typed(ROLE_BINDING, GROUP),
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": GROUP}],
    }


def measured_controller(bench: Bench, name: str) -> Measured:
    user = f"measured-{name}"
    kubeconfig = bench.plane.kubeconfig(user=user, group=GROUP)
    if name == OURS:
        port = bench.plane.ports.free()
        command = [
            *(sys.executable, "-m", "dsf", "controller", f"--namespace={HUB}"),
            *(f"--kubeconfig={kubeconfig}", f"--metrics-bind-address=127.0.0.1:{port}"),
            "--log-level=warning",
        ]
    else:
        words = shlex.split(os.environ["REFERENCE"])
        if not any("{kubeconfig}" in word for word in words):
            words.append("--kubeconfig={kubeconfig}")
        command = [word.replace("{kubeconfig}", str(kubeconfig)) for word in words]
    log = bench.folder / f"{name}.log"
    return Measured(name, command, AuditedWrites(bench.plane.audit_log, user), log)


def show(controllers: Sequence[Measured], latencies: Sequence[tuple[int, float]]) -> None:
    by_phase = defaultdict[int, list[float]](list)
    for phase, seconds in latencies:
        by_phase[phase].append(1000 * seconds)
    for measured in controllers:
        reads = [ms for phase in measured.phases for ms in by_phase[phase]]
        for row, share in (("bystander p50, ms", 0.5), ("bystander p99, ms", 0.99)):
            measured.figures[row] = [quantile(reads, share)]
    alone = f"{quantile(by_phase[1], 0.5):.1f} and {quantile(by_phase[1], 0.99):.1f} ms"
    print(f"A bystander alone: p50 and p99 {alone}. Medians of the rounds:\n")
    print(f"| | {' | '.join(each.name for each in controllers)} |")
    print(f"|---|{'---|' * len(controllers)}")
    for row in ROWS:
        cells = (f"{statistics.median(each.figures[row]):.2f}" for each in controllers)
        print(f"| {row} | {' | '.join(cells)} |", flush=True)


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


async def run(arguments: argparse.Namespace) -> None:
    for row, meaning in ROWS.items():
        print(f"{row}: {meaning}")
    if names() == [OURS]:
        print("No REFERENCE is given: the reference's controller is not measured.")
    for clusters in arguments.clusters:
        await measure(clusters, arguments.rounds)


def main() -> None:
    """Measure and print a table for each size."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hub.fleet_sizes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
