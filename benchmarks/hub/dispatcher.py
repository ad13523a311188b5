"""How fast `dsf dispatcher` nominates worker clusters for a long queue, and by how many writes.

python -m benchmarks.hub.dispatcher [--workloads 500] [--workers 20]

A process of its own against an embedded hub with Kueue's kinds, which runs here. Workloads request
1 to 8 processors in two priorities; a third of them has room. Nothing admits them, so each one
is nominated once. Printed: seconds until the first and until the last is nominated, nominations per
second between them, API writes, and what the plans say of themselves.
"""

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from starlette.requests import Request

from dsf.kube.clock import utc_now
from dsf.kube.kinds import WORKLOAD
from tests.dsf.hub.dispatch.kueue_hub import add_room, kueue_hub, publish, queue, told
from tests.dsf.hub.dispatch.served_kueue import serving_kueue, start_dispatcher

FAR = "2099-01-01T00:00:00Z"
PLAN = re.compile(r"One plan for .*?%\.")


async def measure(workloads: int, workers: int, directory: Path) -> None:
    """Queue the Workloads, run the dispatcher until all are nominated, and print what it took."""
    draw = random.Random(7)  # noqa: S311 - the same queue each time
    clusters = [f"worker-{number:02}" for number in range(workers)]
    hub = await kueue_hub(clusters)
    await publish(hub, FAR, **{name: draw.randint(-100, 100) for name in clusters})
    most = 9 * workloads // (4 * workers)
    await add_room(hub, now=utc_now(), **{name: draw.randint(0, most) for name in clusters})
    for number in range(workloads):
        cpu, priority = str(draw.randint(1, 8)), draw.randrange(2)
        await queue(hub, f"job-{number:04}", cpu=cpu, priority=priority)
    writes, times = Counter[str](), list[float]()
    done = asyncio.Event()

    def arrives(request: Request) -> bool:
        kind = "events" if "/events" in request.url.path else "workloads/status"
        writes[f"{request.method} {kind}"] += 1
        if kind != "events":
            times.append(time.monotonic())
        if len(times) == 2 * workloads:  # the clusters and the condition of each
            done.set()
        return True

    async with serving_kueue(hub, directory, arrives):
        started = time.monotonic()
        process = await start_dispatcher(directory, "--metrics-bind-address=127.0.0.1:0")
        drained = asyncio.create_task(process.communicate())
        await done.wait()
        await asyncio.sleep(3)  # the last Events
        process.terminate()
        await drained
    seconds = times[-1] - times[0]
    plans = Counter[str]()
    for item in (await hub.list(WORKLOAD, "team")).items:
        plans.update(PLAN.findall(await told(hub, item["metadata"]["name"])))
    lines = [
        f"{workloads} Workloads, {workers} workers",
        f"first write after {times[0] - started:.1f} s, the last one {seconds:.1f} s later",
        f"{workloads / seconds:.0f} nominations/s",
        *(f"{number} {name}" for name, number in sorted(writes.items())),
        *plans,
    ]
    sys.stdout.write("\n".join([*lines, ""]))


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=500)
    parser.add_argument("--workers", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(asked.workloads, asked.workers, Path(directory)))


if __name__ == "__main__":
    main()
