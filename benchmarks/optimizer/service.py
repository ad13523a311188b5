"""The memory and CPU of a whole plan: from the hub's JSON to the response.

python -m benchmarks.optimizer.service [--clusters 1000] [--workloads 5000] [--kind prof]

Three processes run: a hub that generates a score for every pair of a workload and a device, the
service, and the solver process that the service starts. The peaks are those of the latter two
(VmHWM of Linux, so pages that both share count twice). CPU is given as a ratio to decoding the same
scores from JSON, which every reader has to do.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.optimizer.instances import Kind
from benchmarks.optimizer.reference_model import cpu_seconds
from benchmarks.optimizer.score_hub import page, request, serve

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_PAGE = 10
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Asked:
    """The instance that is planned, and the settings."""

    clusters: int
    workloads: int
    kind: Kind
    missing: float
    limit: float | None
    gap: float
    seconds: float


class Planned(NamedTuple):
    """The plan's figures; CPU and peak (MiB) of the service, without the solver process."""

    status: str
    value: float
    gap: float | None
    placed: int
    gaps: str
    cpu: float
    peak: int


@dataclass(slots=True)
class Solvers:
    """Peak (MiB) and CPU seconds of a process's children, by process id."""

    peak: dict[int, int] = field(default_factory=dict)
    cpu: dict[int, float] = field(default_factory=dict)

    def watch(self, parent: int, until: threading.Event) -> None:
        """Sample the children until the event is set."""
        while not until.wait(0.02):
            for pid in _below(parent):
                self._look(pid)

    def _look(self, pid: int) -> None:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return
        peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
        if peaks:
            self.peak[pid] = max(self.peak.get(pid, 0), int(peaks[0]) >> 10)
            self.cpu[pid] = (int(stat[11]) + int(stat[12])) / 100


def _below(parent: int) -> Iterator[int]:
    try:
        tasks = list(Path(f"/proc/{parent}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def planned(answers: "Connection[Planned, None]", port: int, asked: Asked) -> None:
    """Plan once against a hub; runs in a process of its own."""
    answers.send(asyncio.run(_plan(port, asked)))


async def _plan(port: int, asked: Asked) -> Planned:
    from dsf.kube.client.connect import connect  # noqa: PLC0415 - its memory is this process's
    from dsf.kube.embedded.http.server import kubeconfig  # noqa: PLC0415
    from optimizer.domain.settings import OptimizerSettings  # noqa: PLC0415
    from optimizer.plan.plan import Plan, result  # noqa: PLC0415
    from optimizer.service.optimizer import Optimizer  # noqa: PLC0415
    from optimizer.wire.request import OptimizeRequest  # noqa: PLC0415

    body = OptimizeRequest.model_validate(request(asked.clusters, asked.workloads, asked.limit))
    settings = OptimizerSettings(gap=asked.gap, time_limit_seconds=asked.seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{port}")))
        async with connect(path) as kube:
            service = Optimizer(kube, settings, now=lambda: datetime.now(UTC))
            made = await service.plan(body)
    if not isinstance(made, Plan):
        raise SystemExit(made.detail)
    answer = result(made, None)
    answer.model_dump_json()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Planned(
        answer.status,
        answer.objective_value,
        answer.gap,
        len(answer.placements),
        f"{len(answer.gaps)}, {answer.gaps[-1].message}" if answer.gaps else "none",
        used.ru_utime + used.ru_stime,
        used.ru_maxrss >> 10,
    )


def measured(asked: Asked) -> tuple[Planned, Solvers]:
    """Plan in a process of its own, against a hub in another."""
    ports, their_ports = _CONTEXT.Pipe(duplex=False)
    answers, their_answers = _CONTEXT.Pipe(duplex=False)
    size = asked.clusters, asked.workloads, asked.kind, asked.missing
    hub = _CONTEXT.Process(target=serve, args=(their_ports, *size), daemon=True)
    hub.start()
    their_ports.close()
    # not a daemon, because it starts the solver process
    service = _CONTEXT.Process(target=planned, args=(their_answers, ports.recv(), asked))
    service.start()
    their_answers.close()
    solvers, done = Solvers(), threading.Event()
    watching = threading.Thread(target=solvers.watch, args=(service.pid, done))
    watching.start()
    try:
        return answers.recv(), solvers
    except EOFError:
        raise SystemExit("the service gave no plan") from None
    finally:
        done.set()
        watching.join()
        service.join()
        hub.terminate()


def decoding(asked: Asked) -> float:
    """Return the CPU seconds of decoding as many scores from JSON."""
    text = page(asked.workloads, _PAGE)
    before = cpu_seconds()
    json.loads(text)
    return (cpu_seconds() - before) * asked.clusters / _PAGE


def main() -> None:
    """Print the memory and CPU of the service and of the solver process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1_000)
    parser.add_argument("--workloads", type=int, default=5_000)
    parser.add_argument("--kind", choices=["prof", "dist", "rand"], default="prof")
    parser.add_argument("--missing", type=float, default=0.0, help="share of pairs without a score")
    parser.add_argument("--limit", type=float, help="limit on the sum of a second score")
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--seconds", type=float, default=300.0, help="time limit of the solver")
    asked = Asked(**vars(parser.parse_args()))
    unit = decoding(asked)
    made, solvers = measured(asked)
    largest = max(solvers.peak, key=lambda pid: solvers.peak[pid])
    gap = "unknown" if made.gap is None else f"{made.gap:.3%}"
    print(
        f"{asked.clusters} clusters x {asked.workloads} workloads {asked.kind},"
        f" {3 * asked.clusters * asked.workloads} scores: {made.status} {made.value:g}, gap {gap},"
        f" {made.placed} placed; gaps: {made.gaps}"
    )
    print(f"  1 = decoding the scores from JSON, {unit:.1f} CPU s")
    print(f"  service           CPU {made.cpu / unit:6.2f}   peak {made.peak:5} MiB")
    print(
        f"  solver's process  CPU {solvers.cpu[largest] / unit:6.2f}"
        f"   peak {solvers.peak[largest]:5} MiB"
    )
    print(f"  together                       {made.peak + solvers.peak[largest]:5} MiB")


if __name__ == "__main__":
    main()
