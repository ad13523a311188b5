"""What it costs to start the command line and each program, as ratios to a bare interpreter.

python -m benchmarks.startup [seconds at rest]

First the CPU seconds of commands that end. Then each program of a deployment, beside embedded hubs
in this process: the seconds until it is ready, the CPU that this takes, the resident memory once it
rests, and the CPU that a minute of rest takes.
"""

import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import yaml

from benchmarks.agent.load import cpu
from dsf.api import names
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from tests.real_hub.harness.ports import Ports

RUNS = 15
STARTS = 5
REST_SECONDS = 10.0
SETTLE_SECONDS = 5.0
"""From ready until a program rests."""
PASS = ("-c", "pass")
CASES: dict[str, Sequence[str]] = {
    "python -c pass": PASS,
    "import dsf": ("-c", "import dsf"),
    "dsf --help": ("-m", "dsf", "--help"),
    "dsf agent --help": ("-m", "dsf", "agent", "--help"),
    "dsf crds": ("-m", "dsf", "crds"),
}
PROGRAMS: dict[str, tuple[Sequence[str], str]] = {
    "controller": (("--kubeconfig={hub}", "--metrics-bind-address=127.0.0.1:{port}"), "readyz"),
    "agent": (
        (
            *("--cluster-name=cluster1", "--hub-kubeconfig={hub}", "--kubeconfig={managed}"),
            "--metrics-bind-address=127.0.0.1:{port}",
        ),
        "readyz",
    ),
    "optimizer": (("--kubeconfig={hub}", "--auth=none", "--port={port}"), "readyz"),
    "mcp": (("--transport=http", "--kubeconfig={hub}", "--auth=none", "--port={port}"), "healthz"),
}
"""The arguments of each program, and the path that says when it is ready."""


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Return the user and system seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def commands() -> float:
    """Run the cases in turn, so that drift of the machine hits all of them, and print medians.

    Returns those of a bare interpreter.
    """
    taken: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(RUNS):
        for name, arguments in CASES.items():
            taken[name].append(cpu_seconds(arguments))
    bare = statistics.median(taken["python -c pass"])
    print(f"{'case':<20}{'CPU s, median':>15}{'ratio':>8}")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"{name:<20}{median:>15.3f}{median / bare:>8.1f}")
    return bare


def resident_mib(pid: int) -> float:
    """Return the resident set of a running process (proc(5), status)."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


async def is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.ok
    except aiohttp.ClientError:
        return False


async def started(name: str, places: dict[str, str], rest: float) -> tuple[float, ...]:
    """Return seconds to ready, CPU seconds to it, MiB at rest, and CPU seconds of its minute."""
    arguments, path = PROGRAMS[name]
    port = Ports().free()
    given = [each.format(**places, port=port) for each in arguments]
    began = time.perf_counter()
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dsf", name, *given), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession() as session:
            while not await is_ready(session, f"http://127.0.0.1:{port}/{path}"):
                if program.returncode is not None:
                    raise RuntimeError(f"dsf {name} ended with {program.returncode}")
                await asyncio.sleep(0.02)
        ready, taken = time.perf_counter() - began, cpu(program.pid)
        if not rest:
            return ready, taken
        await asyncio.sleep(SETTLE_SECONDS)
        before = cpu(program.pid)
        await asyncio.sleep(rest)
        return ready, taken, resident_mib(program.pid), (cpu(program.pid) - before) * 60 / rest
    finally:
        if program.returncode is None:
            program.terminate()
            await program.wait()


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


async def programs(bare: float, rest: float) -> None:
    """Start each program some times, and print a row for each."""
    hub, managed = EmbeddedHub(), EmbeddedHub()
    for name in (names.HUB_NAMESPACE, "cluster1"):
        await hub.create(NAMESPACE, {"metadata": {"name": name}})
    await managed.create(NAMESPACE, {"metadata": {"name": names.AGENT_NAMESPACE}})
    summaries = {"name": names.CONFIG_MAP, "namespace": names.AGENT_NAMESPACE}
    await managed.create(CONFIG_MAP, {"metadata": summaries, "data": {names.SUMMARIES_KEY: "[]"}})
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        async with AsyncExitStack() as stack:
            for name, served in (("hub", hub), ("managed", managed)):
                url = await stack.enter_async_context(serving(served))
                places[name] = written(Path(folder, name), yaml.safe_dump(kubeconfig(url)))
            print(
                f"\n{'program':<12}{'ready s':>9}{'CPU s':>8}{'ratio':>8}{'MiB at rest':>13}"
                f"{'ratio':>8}{'CPU s of a minute':>19}"
            )
            size = interpreter_mib()
            for name in PROGRAMS:
                runs = [await started(name, places, 0) for _ in range(STARTS - 1)]
                *last, mib, minute = await started(name, places, rest)
                seconds, taken = (statistics.median(each) for each in zip(*runs, last, strict=True))
                print(
                    f"{name:<12}{seconds:>9.2f}{taken:>8.2f}{taken / bare:>8.1f}{mib:>13.0f}"
                    f"{mib / size:>8.1f}{minute:>19.2f}"
                )


def interpreter_mib() -> float:
    """Return the resident set of an interpreter that does nothing."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bare:
        time.sleep(0.5)
        mib = resident_mib(bare.pid)
        bare.communicate(b"\n")
    return mib


def main() -> None:
    """Measure and print both tables."""
    rest = float(sys.argv[1]) if len(sys.argv) > 1 else REST_SECONDS
    asyncio.run(programs(commands(), rest))


if __name__ == "__main__":
    main()
