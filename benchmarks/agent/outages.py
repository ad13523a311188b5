"""How soon all scores are fresh again after an outage, and how often a sick scoring API is called.

python -m benchmarks.agent.outages [--scorers 20] [--rounds 3]

`dsf agent` is a process; its source, scoring API, hub and managed cluster run in this one. First
the scoring API answers 500 for 60 s, then both API servers refuse connections for 23 s. Each
outage begins with a new value of all scores, and the clock runs from its end until the hub has
that value of all. REFERENCE is the command line of another agent, which takes turns with ours;
`{hub}` and `{managed}` in it stand for the kubeconfigs.
"""

import argparse
import asyncio
import logging
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import yaml
from aiohttp import web

from benchmarks.agent.load import written
from benchmarks.loopback import serving_answers
from dsf.api import names
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, NAMESPACE
from tests.real_hub.harness.ports import Ports

CLUSTER = "cluster1"
INTERVAL = 10
SICK_SECONDS, GONE_SECONDS = 60.0, 23.0
SETTLE_SECONDS = 2.5 * INTERVAL
LONGEST_SECONDS = 300.0
AFTER_SICK, SCORING_CALLS, HEALTH_CALLS, AFTER_GONE = (
    f"all fresh after {SICK_SECONDS:.0f} s of 500, s",
    "scoring calls meanwhile",
    "health probes meanwhile",
    f"all fresh after {GONE_SECONDS:.0f} s without API servers, s",
)


class ScoringApi:
    """A source and a scoring API: answers one value for all scores, or 500."""

    def __init__(self) -> None:
        self.value = 0
        self.sick = False
        self.calls = Counter[str]()

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        if request.path == "/api/v1/query_range":
            series = [{"metric": {"node": "n1"}, "values": [[1_700_000_000, "1.5"]]}]
            data = {"resultType": "matrix", "result": series}
            return web.json_response({"status": "success", "data": data})
        self.calls[request.path] += 1
        if self.sick:
            return web.Response(status=500)
        if request.path == "/healthz":
            return web.Response(text="ok")
        return web.json_response({"results": [{"metric": {"node": "n1"}, "score": self.value}]})


def summaries(url: str, scorers: int) -> str:
    """Return the scorer summaries of the agent as a text."""
    return dump_summaries(
        [
            ScorerSummary(
                name=f"scorer-{number:02}",
                score_name=f"score-{number:02}",
                source_type="Prometheus",
                source_endpoint=f"{url}/api/v1/query_range",
                source_query="up",
                source_range=60,
                source_step=30,
                scoring_endpoint=f"{url}/scoring",
                scoring_interval=INTERVAL,
                score_dimension_format="${node}",
                location="External",
                score_destination="AddOnPlacementScore",
            )
            for number in range(scorers)
        ]
    )


async def fresh(hub: EmbeddedHub, value: int, scorers: int) -> float:
    """Wait until the hub has a value of all scores; return the seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(LONGEST_SECONDS):
        while True:
            found = (await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)).items
            entries = [(each.get("status") or {}).get("scores") or [] for each in found]
            if sum(each["value"] == value for some in entries for each in some) == scorers:
                return loop.time() - began
            await asyncio.sleep(0.05)


async def round_(command: Sequence[str], scorers: int) -> dict[str, float]:
    """Measure both outages in one life of an agent."""
    api, hub, managed = ScoringApi(), EmbeddedHub(), EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    await managed.create(NAMESPACE, {"metadata": {"name": names.AGENT_NAMESPACE}})
    ports = [Ports().free(), Ports().free()]
    figures = dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        hubs = [
            written(Path(folder, str(port)), yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{port}")))
            for port in ports
        ]
        async with serving_answers(api.answer) as url, AsyncExitStack() as servers:
            data = {names.SUMMARIES_KEY: summaries(url, scorers)}
            metadata = {"name": names.CONFIG_MAP, "namespace": names.AGENT_NAMESPACE}
            await managed.create(CONFIG_MAP, {"metadata": metadata, "data": data})

            async def serve() -> None:
                for served, port in zip((hub, managed), ports, strict=True):
                    await servers.enter_async_context(serving(served, port=port))

            await serve()
            filled = [each.format(hub=hubs[0], managed=hubs[1]) for each in command]
            agent = await asyncio.create_subprocess_exec(
                *filled, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                await fresh(hub, api.value, scorers)
                await asyncio.sleep(SETTLE_SECONDS)
                api.value, api.sick, api.calls = 1, True, Counter()
                await asyncio.sleep(SICK_SECONDS)
                figures[SCORING_CALLS] = api.calls["/scoring"]
                figures[HEALTH_CALLS] = api.calls["/healthz"]
                api.sick = False
                figures[AFTER_SICK] = await fresh(hub, api.value, scorers)
                await asyncio.sleep(SETTLE_SECONDS)
                api.value = 2
                await servers.aclose()
                await asyncio.sleep(GONE_SECONDS)
                await serve()
                figures[AFTER_GONE] = await fresh(hub, api.value, scorers)
            finally:
                agent.terminate()
                await agent.wait()
    return figures


async def measure(scorers: int, rounds: int) -> None:
    """Measure the agents in turns, and print the medians."""
    ours = (
        *(sys.executable, "-m", "dsf", "agent", f"--cluster-name={CLUSTER}"),
        *("--hub-kubeconfig={hub}", "--kubeconfig={managed}", "--log-level=warning"),
        "--metrics-bind-address=127.0.0.1:0",
    )
    commands: dict[str, tuple[str, ...]] = {"ours": ours}
    if given := os.environ.get("REFERENCE"):
        commands["reference"] = tuple(shlex.split(given))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            found[name].append(await round_(command, scorers))
    print(f"{scorers} scorers every {INTERVAL} s. Medians of {rounds} rounds:\n")
    print(f"| | {' | '.join(commands)} |")
    print(f"|---|{'---|' * len(commands)}")
    for row in (AFTER_SICK, SCORING_CALLS, HEALTH_CALLS, AFTER_GONE):
        cells = (statistics.median(each[row] for each in some) for some in found.values())
        print(f"| {row} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agent.outages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scorers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    # It reports each request that the end of a server interrupts, as outages do.
    logging.getLogger("uvicorn.error").disabled = True
    asyncio.run(measure(arguments.scorers, arguments.rounds))


if __name__ == "__main__":
    main()
