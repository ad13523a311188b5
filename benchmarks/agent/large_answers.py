"""The agent's memory while many rounds have large responses at the same time.

python -m benchmarks.agent.large_answers

The sources of all scorers answer 12 MB each at once, and their scoring APIs take a second. Only
`dsf agent` is a process of its own. Its memory is the peak of the resident set.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from aiohttp import web

from benchmarks.agent.load import CLUSTER, peak_mib, written
from benchmarks.loopback import serving_answers
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import NAMESPACE

SCORERS, SERIES, POINTS = 20, 10_000, 60
LIMIT_MIB = 192
"""spokeSetting.agent.resources.limits.memory of the chart."""


@asynccontextmanager
async def source_and_scorer(size: list[int], scored: asyncio.Semaphore) -> AsyncIterator[str]:
    """Serve a large range query and a slow scoring call, and yield the URL."""
    samples = [[1_700_000_000 + 60 * point, "1.5"] for point in range(POINTS)]
    result = [
        {"metric": {"node": "n1", "namespace": "shop", "pod": f"web-{n}"}, "values": samples}
        for n in range(SERIES)
    ]
    series = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    size.append(len(series))

    async def answer(request: web.Request) -> web.Response:
        if not request.path.startswith("/scoring"):
            return web.Response(text=series, content_type="application/json")
        while await request.content.readany():
            pass
        await asyncio.sleep(1)
        scored.release()
        return web.json_response({"results": [{"metric": {"pod": "a"}, "score": 1}]})

    async with serving_answers(answer) as url:
        yield url


def summaries(url: str) -> str:
    """Return the scorer summaries of the agent."""
    return dump_summaries(
        ScorerSummary(
            name=f"scorer-{number:02}",
            score_name=f"score_{number:02}",
            source_type="Prometheus",
            source_endpoint=f"{url}/api/v1/query_range",
            source_query="up",
            source_range=3600,
            source_step=60,
            scoring_endpoint=f"{url}/scoring",
            scoring_interval=600,
            score_dimension_format="${pod}",
        )
        for number in range(SCORERS)
    )


async def measure(more: list[str]) -> None:
    """Run the agent until every scorer was called, and print its memory."""
    size, scored, hub = list[int](), asyncio.Semaphore(0), EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    async with source_and_scorer(size, scored) as url, serving(hub) as hub_url:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dsf", "agent", f"--cluster-name={CLUSTER}"),
                f"--hub-kubeconfig={written(home / 'hub', yaml.safe_dump(kubeconfig(hub_url)))}",
                f"--summaries-file={written(home / 'summaries', summaries(url))}",
                *("--metrics-bind-address=127.0.0.1:0", "--log-level=warning", *more),
                env={"PATH": os.environ["PATH"], "HOME": folder},
            )
            for _ in range(SCORERS):
                await scored.acquire()
            mib = peak_mib(agent.pid)
            agent.terminate()
            await agent.wait()
    print(f"{SCORERS} answers of {size[0] / 1e6:.1f} MB at the same time")
    print(f"resident, peak {mib:>8.1f} MiB{mib / LIMIT_MIB:>8.2f} of the chart's {LIMIT_MIB} MiB")


if __name__ == "__main__":
    asyncio.run(measure(sys.argv[1:]))
