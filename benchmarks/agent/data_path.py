"""The agent's time and memory for one round, as ratios to fetching and decoding the same body.

python -m benchmarks.agent.data_path

The source, the scoring API and the hub run in another process that answers at once with prepared
bodies, so the figures are the agent's own. The agent and the baseline take turns, and their medians
are compared. Memory is the peak of the resident set above its size before the first round.
"""

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from benchmarks.loopback import serving_answers
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.publish.publisher import Publisher
from dsf.agent.run import AgentSettings, round_runner
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now

SERIES, POINTS, RUNS = 10_000, 60, 7
SOURCE, SCORER, HUB = "/api/v1/query_range", "/scoring", "/apis"
Phases = dict[str, float]


def labels(number: int) -> dict[str, str]:
    """Return labels like those of cAdvisor."""
    return {
        "namespace": f"team-{number % 50}",
        "pod": f"web-{number:05}-7d9c5b8f6-{number % 97:05}",
        "container": "app",
        "node": f"node-{number % 100:03}",
        "instance": f"10.0.{number % 100}.17:10250",
        "job": "kubelet",
    }


def series_body() -> bytes:
    """Return the answer of a range query."""
    result = [
        {
            "metric": labels(number),
            "values": [
                [1_700_000_000 + 60 * point, repr((number * 7919 + point * 104_729) % 9973 / 9973)]
                for point in range(POINTS)
            ],
        }
        for number in range(SERIES)
    ]
    body = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return json.dumps(body, separators=(",", ":")).encode()


def scores_body() -> bytes:
    """Return the answer of a scoring call."""
    results = [{"metric": labels(number), "score": number % 100} for number in range(SERIES)]
    return json.dumps({"results": results}, separators=(",", ":")).encode()


def others() -> None:
    """Serve source, scoring API and hub until standard input ends; print the URL."""
    series, scores = series_body(), scores_body()
    stored: dict[str, Any] = {}

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == SOURCE:
            return web.Response(body=series, content_type="application/json")
        if request.path == SCORER:
            return web.Response(body=scores, content_type="application/json")
        if request.method == "GET":
            missing = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
            return web.json_response(missing, status=404)
        change = json.loads(body)
        stored.update({**change, "metadata": {**stored.get("metadata", {}), **change["metadata"]}})
        stored["metadata"]["resourceVersion"] = "1"
        return web.json_response(stored)

    async def serve() -> None:
        async with serving_answers(answer) as url:
            print(url, flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(serve())


@contextmanager
def serving() -> Iterator[str]:
    """Start source, scoring API and hub in a process of their own; yield their URL."""
    code = "from benchmarks.agent.data_path import others; others()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("the other process has no pipes")
        yield process.stdout.readline().strip()
        process.stdin.close()


def kubeconfig(url: str) -> str:
    """Return a kubeconfig for the hub."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "hub",
            "clusters": [{"name": "hub", "cluster": {"server": url}}],
            "users": [{"name": "agent", "user": {}}],
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "agent"}}],
        }
    )


def peak_bytes() -> int:
    """Return the peak of this process's resident set."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def timed(what: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    clock = asyncio.get_running_loop().time
    began = clock()
    result = await what()
    return clock() - began, result


async def compare(url: str, hub_kubeconfig: Path) -> None:
    """Measure both ways in turn and print the ratio."""
    summary = ScorerSummary(
        name="bench",
        score_name="bench",
        source_type="Prometheus",
        source_endpoint=url + SOURCE,
        source_query="up",
        source_range=3600,
        source_step=60,
        scoring_endpoint=url + SCORER,
        scoring_interval=60,
        score_dimension_format="${namespace};${pod}",
    )
    settings = AgentSettings(cluster="cluster1", limits=CallLimits(max_bytes=1 << 28))
    async with (
        http_client() as client,
        connect(hub_kubeconfig) as hub,
        round_runner(settings, None, utc_now) as performer,
    ):

        async def fetch_and_decode() -> int:
            response = await client.pool().get(url + SOURCE)
            json.loads(response.content)
            return len(response.content)

        async def agents_round() -> Phases:
            # The hub has no object yet, so every round writes all scores.
            publisher = Publisher(hub, "cluster1", utc_now)
            done = await performer.perform(summary)
            if done.report.scores is None or not done.report.scores.entries:
                raise RuntimeError(done.failure or "no scores")
            send, published = await timed(
                lambda: publisher.publish(summary, done.report, seconds=60)
            )
            if published.failure is not None:
                raise RuntimeError(published.failure.message)
            return {**done.seconds, "send": send}

        before = peak_bytes()
        await agents_round()
        grown = peak_bytes() - before
        ours, theirs, phases = list[float](), list[float](), list[Phases]()
        size = 0
        for _ in range(RUNS):
            seconds, size = await timed(fetch_and_decode)
            theirs.append(seconds)
            seconds, phase = await timed(agents_round)
            ours.append(seconds)
            phases.append(phase)
    report(ours, theirs, phases, size=size, grown=grown)


def report(
    ours: list[float], theirs: list[float], phases: list[Phases], *, size: int, grown: int
) -> None:
    """Print the medians."""
    mine, yardstick = statistics.median(ours), statistics.median(theirs)
    print(f"{SERIES} series of {POINTS} points, {size / 1e6:.1f} MB, medians of {RUNS} runs")
    print(f"fetch and json.loads            {yardstick:.3f} s")
    print(f"source to published scores      {mine:.3f} s")
    for phase in phases[0]:
        spent = statistics.median(one[phase] for one in phases)
        print(f"  {phase:<30}{spent:.3f} s")
    print(f"ratio                           {mine / yardstick:.2f}")
    print(f"peak memory, in bodies          {grown / size:.2f}")


def main() -> None:
    """Run the comparison."""
    with serving() as url, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(kubeconfig(url), encoding="utf-8")
        asyncio.run(compare(url, path))


if __name__ == "__main__":
    main()
