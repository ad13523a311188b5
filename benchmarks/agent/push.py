"""The latency from a push to the published score, beside the wait for a round without a push.

python -m benchmarks.agent.push [pushes]

First part: `dsf agent` is a process with one scorer; its scoring API, hub and managed cluster run
in this one. A score changes, the scorer pushes, and the clock stops when the hub has the new value.
Second part: as many changes at random times of rounds every 30 s, in virtual time, without a push.
"""

import asyncio
import base64
import os
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
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
from dsf.agent.score.forecasts import TruthValues
from dsf.agent.score.result_rules import AddOnPlacementScoreItem, RoundScores
from dsf.api import names
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, NAMESPACE, SECRET
from dsf.kube.port import Object
from dsf.runtime.reconcile.reflector import View
from dsf.sim.virtual_time import VirtualTimeLoop
from tests.real_hub.harness.ports import Ports

PUSHES, INTERVAL, CLUSTER, TOKEN = 300, 30, "cluster1", "token-of-the-benchmark"


def summary(url: str, interval: int) -> ScorerSummary:
    """Return the summary of the scorer."""
    return ScorerSummary(
        name="scorer",
        score_name="score",
        source_type="None",
        scoring_endpoint=f"{url}/scoring",
        scoring_interval=interval,
        scoring_endpoint_auth_name="token",
        scoring_endpoint_auth_key="token",
        score_dimension_format="${pod}",
    )


class Published:
    """The value of the score on a hub, as a watch shows it."""

    def __init__(self, hub: EmbeddedHub) -> None:
        self._changed = asyncio.Event()
        self.view = View(hub, ADD_ON_PLACEMENT_SCORE, CLUSTER, read=value_of)
        self.view.on_change(lambda _: self._changed.set())

    async def has(self, value: int) -> None:
        """Wait until the score has a value."""
        while value not in self.view.items.values():
            self._changed.clear()
            await self._changed.wait()


def value_of(score: Object) -> int | None:
    """Return the value of the only entry of an AddOnPlacementScore; None without one."""
    entries = (score.get("status") or {}).get("scores")
    return int(entries[0]["value"]) if entries else None


@asynccontextmanager
async def watched(hub: EmbeddedHub) -> AsyncIterator[Published]:
    """Watch a hub's score while the context lasts."""
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    published = Published(hub)
    watching = asyncio.create_task(published.view.run())
    yield published
    watching.cancel()


@asynccontextmanager
async def scorer(current: list[int]) -> AsyncIterator[str]:
    """Serve a scoring API whose score is that of the list, and yield its URL."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"results": [{"metric": {"pod": "a"}, "score": current[0]}]})

    async with serving_answers(answer) as url:
        yield url


def written(path: Path, url: str) -> Path:
    """Write the kubeconfig of a hub and return its path."""
    path.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
    return path


async def pushed(pushes: int) -> list[float]:
    """Return the seconds from each push to the changed score on the hub."""
    hub, managed, current = EmbeddedHub(), EmbeddedHub(), [0]
    own, bind = names.AGENT_NAMESPACE, f"127.0.0.1:{Ports().free()}"
    await managed.create(NAMESPACE, {"metadata": {"name": own}})
    token = {"token": base64.b64encode(TOKEN.encode()).decode()}
    secret = {"metadata": {"name": "token", "namespace": own}, "type": "Opaque", "data": token}
    await managed.create(SECRET, secret)
    async with (
        scorer(current) as url,
        serving(hub) as hub_url,
        serving(managed) as managed_url,
        watched(hub) as published,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        data = {names.SUMMARIES_KEY: dump_summaries([summary(url, 3600)])}
        metadata = {"name": names.CONFIG_MAP, "namespace": own}
        await managed.create(CONFIG_MAP, {"metadata": metadata, "data": data})
        with tempfile.TemporaryDirectory() as folder:
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dsf", "agent", f"--cluster-name={CLUSTER}"),
                f"--hub-kubeconfig={written(Path(folder, 'hub'), hub_url)}",
                f"--kubeconfig={written(Path(folder, 'own'), managed_url)}",
                *("--metrics-bind-address=127.0.0.1:0", f"--push-bind-address={bind}"),
                *("--push-min-interval=1ms", "--log-level=warning"),
                env={"PATH": os.environ["PATH"], "HOME": folder},
            )
            await published.has(0)
            clock, seconds = asyncio.get_running_loop().time, list[float]()
            for number in range(pushes):
                current[0], began = number % 100 + 1, clock()
                sent = {"Authorization": f"Bearer {TOKEN}"}
                answer = await client.post(f"http://{bind}/score/scorer", headers=sent)
                answer.raise_for_status()
                await published.has(current[0])
                seconds.append(clock() - began)
            agent.terminate()
            await agent.wait()
    return seconds


class Changing:
    """Performs rounds that return the current score."""

    cluster = CLUSTER
    score = 0

    def now(self) -> datetime:
        """Return the time of day."""
        began = datetime(2026, 1, 1, tzinfo=UTC)
        return began + timedelta(seconds=asyncio.get_running_loop().time())

    async def probe(self, summary: ScorerSummary) -> Failure | None:
        """Return None: the API is healthy."""

    async def truth(self, summary: ScorerSummary, after: float) -> TruthValues | Failure:
        """Fail: nothing is forecast."""
        raise NotImplementedError

    async def perform(self, summary: ScorerSummary) -> Round:
        """Perform one round."""
        scores = RoundScores((AddOnPlacementScoreItem("a", self.score),))
        return Round(summary, RoundReport.success(scores), None, {})


async def waited(changes: int) -> list[float]:
    """Return the virtual seconds from each change to the changed score on the hub."""
    hub, performer = EmbeddedHub(), Changing()
    draw = random.Random(1)  # noqa: S311 - no secret
    metrics = AgentMetrics(CollectorRegistry(), lambda: performer.now().timestamp())
    agent = Agent(performer, Publisher(hub, CLUSTER, performer.now), metrics, CallLimits())
    running = asyncio.create_task(agent.run())
    agent.configure(dump_summaries([summary("http://scorer.example", INTERVAL)]))
    clock, seconds = asyncio.get_running_loop().time, list[float]()
    async with watched(hub) as published:
        await published.has(0)
        for number in range(changes):
            await asyncio.sleep(draw.uniform(0, INTERVAL))
            performer.score, began = number % 100 + 1, clock()
            await published.has(performer.score)
            seconds.append(clock() - began)
    running.cancel()
    return seconds


def show(what: str, seconds: Sequence[float]) -> None:
    """Print the median and the 99th percentile."""
    p99 = statistics.quantiles(seconds, n=100)[98]
    print(f"{what:<42}p50 {statistics.median(seconds):>9.3f} s    p99 {p99:>9.3f} s")


def main() -> None:
    """Run both."""
    pushes = int(sys.argv[1]) if len(sys.argv) > 1 else PUSHES
    show(f"{pushes} pushes to published score", asyncio.run(pushed(pushes)))
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        seconds = runner.run(waited(pushes))
    show(f"without a push, an interval of {INTERVAL} s", seconds)


if __name__ == "__main__":
    main()
