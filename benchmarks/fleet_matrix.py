"""What GET /fleet costs for 5,000 clusters: CPU seconds of each part, and the size of the answer.

python -m benchmarks.fleet_matrix

A lister in this process, so that neither sockets nor JSON of the hub count. Each cluster has four
scores of 60 entries.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, MANAGED_CLUSTER, Kind
from dsf.kube.port import Object, ObjectList
from optimizer.api.operation_routes import matrix_document
from optimizer.follow.overview.fleet_matrix import fleet_matrix
from optimizer.service.observe_fleet import observe_fleet

CLUSTERS, SCORES, APPS, DEVICES = 5_000, 4, 10, 6
NOW = datetime(2026, 1, 1, tzinfo=UTC)

T = TypeVar("T")


class GeneratedFleet:
    """Lists clusters and scores that it keeps, page by page."""

    def __init__(self) -> None:
        names = [f"cluster-{number:05}" for number in range(CLUSTERS)]
        scores = [
            _score(at, name, score) for at, name in enumerate(names) for score in range(SCORES)
        ]
        self._lists = {MANAGED_CLUSTER: [*map(_cluster, names)], ADD_ON_PLACEMENT_SCORE: scores}

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,  # noqa: ARG002 - the port's signature
        *,
        labels: str = "",  # noqa: ARG002
        fields: str = "",  # noqa: ARG002
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return a page."""
        items, start = self._lists.get(kind, []), int(continue_token or 0)
        end = start + limit if limit else len(items)
        return ObjectList(tuple(items[start:end]), "1", str(end) if end < len(items) else "")


async def main() -> None:
    """Print the CPU seconds and the sizes."""
    hub = GeneratedFleet()

    read = partial(observe_fleet, hub, "default", now=lambda: NOW, described=True)
    _, without = await _timed(read)
    facts, seconds = await _timed(partial(read, columns=True))
    print(f"facts without entries {without:.2f} s, with entries {seconds:.2f} s")
    began = time.process_time()
    found = fleet_matrix(facts)
    made = time.process_time()
    document = matrix_document(found)
    ended = time.process_time()
    print(f"matrix {made - began:.2f} s, JSON and compression {ended - made:.2f} s")
    print(f"{len(document.body) / 1e3:.0f} KB, compressed {len(document.compressed) / 1e3:.0f} KB")


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    began = time.process_time()
    found = await work()
    return found, time.process_time() - began


def _cluster(name: str) -> Object:
    available = {"type": "ManagedClusterConditionAvailable", "status": "True"}
    return {
        "metadata": {"name": name, "labels": {"name": name}},
        "spec": {"hubAcceptsClient": True},
        "status": {"conditions": [available], "allocatable": {"cpu": "64", "memory": "512Gi"}},
    }


def _score(number: int, cluster: str, score: int) -> Object:
    entries = [
        {"name": f"app{app};dev{device}", "value": (7919 * number + 97 * app + 11 * device) % 101}
        for app in range(APPS)
        for device in range(DEVICES)
    ]
    status = {"validUntil": "2026-01-02T00:00:00Z", "scores": entries}
    return {"metadata": {"name": f"score-{score}", "namespace": cluster}, "status": status}


if __name__ == "__main__":
    asyncio.run(main())
