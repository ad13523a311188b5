"""The agent's CPU, memory and writes to the hub while nothing changes.

python -m benchmarks.agent.load [seconds]

First part: 50 scorers every 10 s, each with 50 series of 60 points. `dsf agent` is a process; its
source, scoring APIs, hub and managed cluster run in this one. Memory is the peak of the resident
set; CPU, as a share of one core, is counted after the first rounds. Second part: an hour of 50
scorers in virtual time. It prints every write to the hub, and how many of them only renew a
score.
"""

import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from prometheus_client import CollectorRegistry

from benchmarks.loopback import serving_answers
from dsf.agent.failure import Failure
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.metrics import AgentMetrics
from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.publish.publisher import Publisher
from dsf.agent.round import Round
from dsf.agent.round_loop import Agent
from dsf.agent.score.result_rules import AddOnPlacementScoreItem, RoundScores
from dsf.api import names
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, NAMESPACE, Kind
from dsf.kube.port import Object
from dsf.sim.virtual_time import VirtualTimeLoop
from tests.kube_wrappers.counting import Counting

SCORERS, INTERVAL = 50, 10
SERIES, POINTS = 50, 60
MAX_MIB, MAX_SHARE = 120, 0.15
CLUSTER = "cluster1"
HOUR = 3600
TICKS = os.sysconf("SC_CLK_TCK")


def summaries(url: str) -> list[ScorerSummary]:
    """Return the scorer summaries of the agent."""
    return [
        ScorerSummary(
            name=f"scorer-{number:02}",
            score_name=f"score_{number:02}",
            source_type="Prometheus",
            source_endpoint=f"{url}/api/v1/query_range",
            source_query="up",
            source_range=HOUR,
            source_step=HOUR // POINTS,
            scoring_endpoint=f"{url}/scoring",
            scoring_interval=INTERVAL,
            score_dimension_format="${node};${pod}",
        )
        for number in range(SCORERS)
    ]


@asynccontextmanager
async def source_and_scorer(calls: list[str], warm: asyncio.Event) -> AsyncIterator[str]:
    """Serve a range query and a scoring call, and yield the URL; say when all came twice."""
    metrics = [{"node": "n1", "namespace": "shop", "pod": f"web-{n}"} for n in range(SERIES)]
    samples = [[1_700_000_000 + 60 * point, "1.5"] for point in range(POINTS)]
    result = [{"metric": metric, "values": samples} for metric in metrics]
    series = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    scores = {"results": [{"metric": metric, "score": 42.5} for metric in metrics]}

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        calls.append(request.path)
        if len(calls) >= 4 * SCORERS:
            warm.set()
        return web.json_response(scores if request.path == "/scoring" else series)

    async with serving_answers(answer) as url:
        yield url


def written(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


async def process(seconds: float) -> None:
    """Run the agent for a while and print its CPU and memory."""
    calls, warm = list[str](), asyncio.Event()
    hub, managed = EmbeddedHub(), EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    await managed.create(NAMESPACE, {"metadata": {"name": names.AGENT_NAMESPACE}})
    async with (
        source_and_scorer(calls, warm) as url,
        serving(hub) as hub_url,
        serving(managed) as managed_url,
    ):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            await managed.create(
                CONFIG_MAP,
                {
                    "metadata": {"name": names.CONFIG_MAP, "namespace": names.AGENT_NAMESPACE},
                    "data": {names.SUMMARIES_KEY: dump_summaries(summaries(url))},
                },
            )
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dsf", "agent", f"--cluster-name={CLUSTER}"),
                f"--hub-kubeconfig={written(home / 'hub', yaml.safe_dump(kubeconfig(hub_url)))}",
                f"--kubeconfig={written(home / 'own', yaml.safe_dump(kubeconfig(managed_url)))}",
                "--metrics-bind-address=127.0.0.1:0",
                "--log-level=warning",
                env={"PATH": os.environ["PATH"], "HOME": folder},
            )
            await warm.wait()
            before, began, used = len(calls), asyncio.get_running_loop().time(), cpu(agent.pid)
            await asyncio.sleep(seconds)
            spent = asyncio.get_running_loop().time() - began
            share = (cpu(agent.pid) - used) / spent
            rounds, mib = (len(calls) - before) / 2, peak_mib(agent.pid)
            agent.terminate()
            await agent.wait()
    published = await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)
    print(f"{SCORERS} scorers every {INTERVAL} s, {rounds:.0f} rounds in {spent:.0f} s,", end=" ")
    print(f"{len(published.items)} objects of {SERIES} scores")
    print(f"{'resident, peak':<34}{mib:>8.1f} MiB{mib / MAX_MIB:>8.2f} of {MAX_MIB} MiB")
    print(f"{'CPU, share of one core':<34}{share:>8.1%}    {share / MAX_SHARE:>8.2f} of", end=" ")
    print(f"{MAX_SHARE:.0%}")


def cpu(pid: int) -> float:
    """Return the CPU seconds of a running process (proc(5), stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mib(pid: int) -> float:
    """Return the peak of a running process's resident set (proc(5), status)."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


class Noting(EmbeddedHub):
    """A hub that records which status fields each write changes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Counter[tuple[str, ...]]()

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        **rest: Any,
    ) -> Object:
        """Apply a JSON merge patch."""
        self.written[tuple(sorted(patch["status"]))] += 1
        return await super().patch(kind, name, patch, namespace, **rest)


class Unchanged:
    """Performs rounds that always return the same scores."""

    cluster = CLUSTER
    rounds = 0

    def now(self) -> datetime:
        """Return the time of day."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(
            seconds=asyncio.get_running_loop().time()
        )

    async def probe(self, summary: ScorerSummary) -> Failure | None:
        """Return None: every API is healthy."""

    async def perform(self, summary: ScorerSummary) -> Round:
        """Perform one round."""
        self.rounds += 1
        await asyncio.sleep(0.5)
        scores = RoundScores(
            tuple(AddOnPlacementScoreItem(f"web-{n}", n % 100) for n in range(SERIES))
        )
        return Round(summary, RoundReport.success(scores), None, {})


async def hour() -> None:
    """Run an hour of rounds in virtual time and print the writes."""
    hub, performer = Noting(), Unchanged()
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    counting = Counting(hub)
    metrics = AgentMetrics(CollectorRegistry(), lambda: performer.now().timestamp())
    agent = Agent(performer, Publisher(counting, CLUSTER, performer.now), metrics, CallLimits())
    running = asyncio.create_task(agent.run())
    agent.configure(dump_summaries(summaries("http://scorer.example")))
    await asyncio.sleep(60)
    hub.written.clear()
    writes, rounds = counting.writes, performer.rounds
    await asyncio.sleep(HOUR)
    running.cancel()
    writes, rounds = counting.writes - writes, performer.rounds - rounds
    renewals = hub.written["validUntil",]
    print(f"\nan unchanged hour of {SCORERS} scorers every {INTERVAL} s: {rounds} rounds")
    print(f"{'hub writes':<34}{writes:>8}    {writes / rounds:>8.2f} of one per round")
    print(f"{'renewals of validUntil alone':<34}{renewals:>8}    {renewals / writes:>8.2f} of them")
    print(f"{'hub writes besides renewals':<34}{writes - renewals:>8}")


def main() -> None:
    """Run both."""
    asyncio.run(process(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(hour())


if __name__ == "__main__":
    main()
