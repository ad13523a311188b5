"""What GET /fleet costs for 5,000 clusters: CPU seconds read anew, and of a watched hub.

python -m benchmarks.fleet_matrix [clusters [entries]]

A hub in this process, so that neither sockets nor JSON of the hub count. Each cluster has four
scores of 60 entries, and a NodeInventory with 24 GPUs, which differ from cluster to cluster. Each
figure is the least of REPEATS. "Read anew" is what every answer costs without a cache; the ratio to
it is what a watched hub saves. Memory is what the process grew by.
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, MANAGED_CLUSTER, NODE_INVENTORY, Kind
from dsf.kube.port import Object, ObjectList, WatchEvent
from optimizer.api.operation_routes import matrix_document
from optimizer.follow.overview.fleet_matrix import MatrixRows, fleet_matrix
from optimizer.service.hub.fleet_matrices import FleetMatrices
from optimizer.service.hub.watched_hub import WatchedHub
from optimizer.service.observe_fleet import OPTIONAL_KINDS, observe_fleet

SCORES, DEVICES, REPEATS = 4, 6, 3
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class GeneratedFleet:
    """Lists and watches clusters and scores, page by page; each list makes them anew."""

    def __init__(self, clusters: int, entries: int) -> None:
        self._names = [f"cluster-{number:05}" for number in range(clusters)]
        self._entries = entries
        self._version = 1
        self._events = asyncio.Queue[WatchEvent]()

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,  # noqa: ARG002 - the port's signature
        *,
        labels: str = "",  # noqa: ARG002
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return a page."""
        start = int(continue_token or 0)
        per = {MANAGED_CLUSTER: 1, NODE_INVENTORY: 1, ADD_ON_PLACEMENT_SCORE: SCORES}.get(kind, 0)
        count = 0 if fields else per * len(self._names)
        end = min(start + limit, count) if limit else count
        make = {MANAGED_CLUSTER: _cluster, NODE_INVENTORY: _inventory}.get(kind, self._score)
        items = tuple(make(*self._at(number, per), 1) for number in range(start, end))
        return ObjectList(items, "1", str(end) if end < count else "")

    async def watch(self, kind: Kind, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent]:
        """Yield the changes of scores."""
        while True:
            if kind != ADD_ON_PLACEMENT_SCORE:
                await asyncio.sleep(1e6)
            yield await self._events.get()
            self._events.task_done()

    def change_scores(self, count: int) -> None:
        """Publish the first scores again, each with other values."""
        for number in range(count):
            self._version += 1
            score = self._score(*self._at(number, SCORES), self._version)
            self._events.put_nowait(WatchEvent("MODIFIED", score))

    async def sent(self) -> None:
        """Return once all changes were taken."""
        await self._events.join()

    def _at(self, number: int, per: int) -> tuple[str, int]:
        return self._names[number // per], number % per

    def _score(self, cluster: str, score: int, version: int) -> Object:
        at = hash(cluster) + 7919 * version
        entries = [
            {"name": f"app{n // DEVICES};dev{n % DEVICES}", "value": (at + 11 * n) % 101}
            for n in range(self._entries)
        ]
        metadata = {"name": f"score-{score}", "namespace": cluster, "resourceVersion": f"{version}"}
        return {
            "metadata": metadata,
            "status": {"validUntil": "2026-01-02T00:00:00Z", "scores": entries},
        }


async def main(clusters: int = 5_000, entries: int = 60) -> None:
    """Print the CPU seconds and the sizes."""
    api: Any = GeneratedFleet(clusters, entries)

    async def answer(kube: Any, rows: MatrixRows | None) -> Any:
        facts = await observe_fleet(kube, "default", now=lambda: NOW, columns=True)
        return matrix_document(fleet_matrix(facts, rows))

    gc.collect()
    before = _resident()
    hub, rows = WatchedHub(api), MatrixRows()
    running = asyncio.create_task(hub.run())
    await asyncio.sleep(0)
    told = asyncio.Event()
    hub.on_change(ADD_ON_PLACEMENT_SCORE, lambda _: told.set())
    hub.watch(MANAGED_CLUSTER, ADD_ON_PLACEMENT_SCORE, NODE_INVENTORY)
    await told.wait()
    gc.collect()
    held = (_resident() - before) >> 20
    print(f"in memory: {held} MiB for {clusters * SCORES * entries:,} entries of scores")

    await answer(api, None)
    anew, document = await _least(lambda: answer(api, None))
    print(f"{len(document.body) / 1e3:.0f} KB, compressed {len(document.compressed) / 1e3:.0f} KB")
    print(f"read anew: {anew:.3f} s")
    await answer(hub, rows)
    matrices = FleetMatrices(
        hub,
        lambda namespace, listed: observe_fleet(
            hub, namespace, now=lambda: NOW, listed=listed, columns=True
        ),
    )
    for _ in range(2):
        await matrices.matrix("default", listed=OPTIONAL_KINDS)
    same, _ = await _least(lambda: matrices.matrix("default", listed=OPTIONAL_KINDS))
    print(f"watched, nothing changed: {same:.5f} s, {same / anew:.2%} of it")
    for changed in (1, clusters // 5, clusters * SCORES):

        async def taken(changed: int = changed) -> None:
            api.change_scores(changed)
            await api.sent()

        async def answered(taken: Callable[[], Awaitable[None]] = taken) -> float:
            await taken()
            return (await _least(lambda: answer(hub, rows), 1))[0]

        events, _ = await _least(taken)
        best = min([await answered() for _ in range(REPEATS)])
        print(
            f"watched, {changed} scores changed: {best:.3f} s, {best / anew:.1%} of it;"
            f" their events {events:.3f} s"
        )
    running.cancel()


async def _least(work: Callable[[], Awaitable[Any]], repeats: int = REPEATS) -> tuple[float, Any]:
    least, found = float("inf"), None
    for _ in range(repeats):
        began = time.process_time()
        found = await work()
        least = min(least, time.process_time() - began)
    return least, found


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def _cluster(name: str, *_: int) -> Object:
    available = {"type": "ManagedClusterConditionAvailable", "status": "True"}
    return {
        "metadata": {
            "name": name,
            "labels": {"name": name, "region": f"region-{int(name[-3:]) % 7}"},
            "resourceVersion": "1",
        },
        "spec": {"hubAcceptsClient": True},
        "status": {"conditions": [available], "allocatable": {"cpu": "64", "memory": "512Gi"}},
    }


def _inventory(name: str, *_: int) -> Object:
    model, halves = LAYOUTS[int(name[-5:]) % len(LAYOUTS)]
    device = f"nvidia.com/{halves}"
    used = {"cpu": "8", device: "3"}
    node = {
        "count": 3,
        "ready": True,
        "labels": {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": "8"},
        "allocatable": {"cpu": "64", "memory": "512Gi", device: "8" if halves == "gpu" else "16"},
        "requested": {**used, "memory": "64Gi"},
        "works": [{"name": "work", "requested": used}],
    }
    metadata = {"name": name, "namespace": name, "resourceVersion": "1"}
    times = {"observedTime": "2026-01-01T00:00:00Z", "validUntil": "2026-01-01T00:03:00Z"}
    return {"metadata": metadata, "status": {**times, "nodes": [node], "works": [{"name": "work"}]}}


LAYOUTS = (
    ("NVIDIA-H100-80GB-HBM3", "gpu"),
    ("NVIDIA-H100-80GB-HBM3", "mig-3g.40gb"),
    ("NVIDIA-A100-SXM4-40GB", "mig-3g.20gb"),
    ("NVIDIA-L40S", "gpu"),
)
"""Products, and the resource that their GPUs are."""


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
