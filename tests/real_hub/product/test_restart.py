"""A restart never rolls back: the controller is killed at random moments on a real API server.

While a scoring API changes its config again and again, the process that distributes it gets
SIGKILL. A watch sees every version of every ManifestWork: none has an older config than before.
The test has its own control plane, with any number of managed clusters.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.client.connect import connect
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK
from tests.eventually import eventually

from ..harness.ports import LOOPBACK
from ..test_outage import HUB, WORK, created, etcd_and_plane, named, prepare  # noqa: F401 - the fixture is found by its name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsf.kube.port import Kube, Object

    from ..harness.control_plane import ControlPlane

CLUSTERS = [f"c{number}" for number in range(60)]
KILLS = int(os.environ.get("FIRE_KILLS", "20"))
"""Of one controller, and as many of the leading one of two; `make fire-hub` sets 50."""
SEED = 13
CHANGE_SECONDS = 60.0
"""A controller that was killed has to start, take over, probe and distribute in this time."""
LATEST_KILL_SECONDS = 3.0
LEADS = re.compile(r"^leader_election_master_status\S* 1", re.MULTILINE)
ELECTION = (
    "--leader-elect",
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1s",
    "--leader-elect-retry-period=200ms",
)


class ChangingAPI(ThreadingHTTPServer):
    """A scoring API whose config carries a version, as the range of its query."""

    version = 1

    def config(self) -> Object:
        """Return the config of the current version."""
        params = {"query": "up", "range": self.version, "step": 30}
        source = {"type": "Prometheus", "host": "http://p", "path": "/p", "params": params}
        scoring = {"path": "/scoring", "params": {"name": "cpu_score", "interval": 30}}
        return {"name": "cpu", "description": "cpu", "source": source, "scoring": scoring}

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://{LOOPBACK}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ChangingAPI

    def do_GET(self) -> None:
        body = json.dumps(self.server.config()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing, to keep pytest's output readable."""


@contextmanager
def changing_api() -> Iterator[ChangingAPI]:
    """Serve a scoring API from a thread."""
    server = ChangingAPI((LOOPBACK, 0), _Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Watched:
    """The version in every ManifestWork, and every decrease of a version."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.falls: list[str] = []

    def on(self, version: int) -> int:
        """Return how many managed clusters have a version or a newer one."""
        return sum(each >= version for each in self.versions.values())

    async def watch(self, kube: Kube) -> None:
        """Follow all works from the beginning until cancelled."""
        at = (await kube.list(MANIFEST_WORK)).resource_version
        while True:
            events = kube.watch(
                MANIFEST_WORK,
                fields=f"metadata.name={WORK}",
                resource_version=at,
                timeout_seconds=300,
            )
            async for event in events:
                at = event.object["metadata"]["resourceVersion"]
                if event.type != "BOOKMARK":
                    self._take(event.object)

    def _take(self, work: Object) -> None:
        cluster = work["metadata"]["namespace"]
        found = re.search(r'"sourceRange": (\d+)', summaries_text(work))
        version, before = int(found[1]) if found else 0, self.versions.get(cluster, 0)
        if version < before:
            self.falls.append(f"{cluster}: {version} after {before}")
        self.versions[cluster] = version


class Controllers:
    """One or two controllers as processes; one of them leads."""

    def __init__(self, plane: ControlPlane, *, replicas: int) -> None:
        self._plane = plane
        self._ports = {f"controller-{number}": plane.ports.free() for number in range(replicas)}

    def start(self, name: str) -> None:
        """Start one of them."""
        arguments = (
            f"--kubeconfig={self._plane.admin_kubeconfig}",
            f"--metrics-bind-address={LOOPBACK}:{self._ports[name]}",
            "--resync-seconds=1",
            *(ELECTION if len(self._ports) > 1 else ()),
        )
        self._plane.processes.start(name, [sys.executable, "-m", "dsf", "controller", *arguments])

    def start_all(self) -> None:
        """Start all of them."""
        for name in self._ports:
            self.start(name)

    def kill_leader(self) -> None:
        """End the one that writes by SIGKILL, and start it again."""
        name = next(filter(self._leads, self._ports), "controller-0")
        self._plane.processes.kill(name)
        self.start(name)

    def _leads(self, name: str) -> bool:
        try:
            answer = httpx.get(f"http://{LOOPBACK}:{self._ports[name]}/metrics", trust_env=False)
        except httpx.TransportError:
            return False
        return (
            re.search(r"^leader_election_master_status\S* 1", answer.text, re.MULTILINE) is not None
        )


@pytest.mark.long
@pytest.mark.parametrize("replicas", [1, 2], ids=["restart", "takeover"])
@pytest.mark.fire(
    "no cluster gets an older summary after a restart or a takeover",
    "SIGKILL at random moments, on a real API server",
    count=KILLS,
)
async def test_killed_at_random_moments_no_cluster_gets_an_older_config(
    etcd_and_plane: tuple[str, ControlPlane],  # noqa: F811
    replicas: int,
) -> None:
    _, plane = etcd_and_plane
    draw = random.Random(SEED)  # noqa: S311 - a test that fails is to be repeated
    controllers, watched = Controllers(plane, replicas=replicas), Watched()
    with changing_api() as api:
        async with connect(plane.admin_kubeconfig) as kube:
            await prepare(kube, CLUSTERS)
            await created(kube, DYNAMIC_SCORER, scorer(api.url))
            watching = asyncio.create_task(watched.watch(kube))
            controllers.start_all()
            await everywhere(watched, api.version)
            for number in range(KILLS):
                api.version += 1
                await moment(draw, watched, api.version, in_the_middle=number % 2 == 0)
                await asyncio.to_thread(controllers.kill_leader)
                assert watched.falls == [], f"kill {number + 1}"
            await everywhere(watched, api.version)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    assert watched.falls == []


def scorer(url: str) -> Object:
    """The DynamicScorer of the API."""
    spec = {
        "description": "cpu",
        "configURL": f"{url}/config",
        "configSyncMode": "Full",
        "location": "External",
        "scoreDestination": "AddOnPlacementScore",
        "scoreDimensionFormat": "${node}",
    }
    return named("cpu", HUB, spec=spec)


async def everywhere(watched: Watched, version: int) -> None:
    """Wait until every managed cluster has a version."""

    async def holds() -> bool:
        return watched.on(version) == len(CLUSTERS)

    await eventually(holds, seconds=CHANGE_SECONDS)


async def moment(
    draw: random.Random, watched: Watched, version: int, *, in_the_middle: bool
) -> None:
    """Wait for a random time, or until a random number of clusters has a version."""
    if not in_the_middle:
        await asyncio.sleep(draw.uniform(0, LATEST_KILL_SECONDS))
        return
    wanted = draw.randrange(1, len(CLUSTERS))

    async def reached() -> bool:
        return watched.on(version) >= wanted

    await eventually(reached, seconds=CHANGE_SECONDS, every=0.001)
