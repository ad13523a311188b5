"""From a changed score, or a lost cluster, to the changed Placement, on a real kube-apiserver.

python -m benchmarks.optimizer.kept [--clusters 20] [--workloads 40] [--changes 30]

A PlacementOptimization keeps the workloads placed; `dsf optimizer` is a process. Scores decide at
once (a window of 0): with a window, the average needs it first. The clock starts with the request
that changes a score, or taints a cluster, and stops when a watch shows the Placement that moves.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.hub.controller import control_plane, counts, create, serve
from benchmarks.hub.fleet import HUB, fleet, typed
from benchmarks.hub.write_concurrency import name_of
from dsf.api.crd.definitions import crds
from dsf.kube.changes import Create
from dsf.kube.client.connect import connect
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK_REPLICA_SET,
    NAMESPACE,
    PLACEMENT,
    PLACEMENT_OPTIMIZATION,
)
from dsf.kube.port import Kube, Object
from dsf.kube.resources.ocm import ocm_crds
from dsf.runtime.reconcile.reflector import View
from dsf.sim.stories.story import gpus, replica_set

SCORE, KEPT, NAMESPACE_OF_WORKLOADS = "benched", "kept", "default"
BEST, FAIR = 90, 30
SPARE = 2
"""How many times the GPUs that the workloads need are there."""


def optimization(clusters: int, workloads: int) -> Object:
    """Return what keeps the workloads placed, by the last scores."""
    supply = [gpus(-(-SPARE * workloads // clusters))]
    return {
        **typed(PLACEMENT_OPTIMIZATION, KEPT, NAMESPACE_OF_WORKLOADS),
        "spec": {
            "mode": "Apply",
            "clusters": [{"name": name_of(n), "allocatable": supply} for n in range(clusters)],
            "preference": {"addonPlacementScore": SCORE},
            "hysteresis": {"stabilizationWindowSeconds": 0, "leastGain": 5, "variationMultiple": 0},
        },
    }


class Scores:
    """The score of each workload on each cluster: one is best, the others are fair."""

    def __init__(self, kube: Kube, clusters: int, workloads: int) -> None:
        self._kube = kube
        self._clusters = clusters
        self.best = {f"app-{n}": n % clusters for n in range(workloads)}

    async def publish(self, *numbers: int) -> None:
        """Write the scores of some clusters."""
        for number in numbers:
            entries = [
                {"name": f"{app};all", "value": BEST if best == number else FAIR}
                for app, best in self.best.items()
            ]
            body = {"status": {"scores": entries}}
            await self._kube.patch(
                ADD_ON_PLACEMENT_SCORE, SCORE, body, name_of(number), subresource="status"
            )

    async def flip(self, app: str, to: int) -> None:
        """Make another cluster the best one of a workload."""
        before, self.best[app] = self.best[app], to
        await self.publish(to, before)


async def prepare(kube: Kube, clusters: int, workloads: int) -> Scores:
    kinds = (PLACEMENT_OPTIMIZATION, MANIFEST_WORK_REPLICA_SET, MANAGED_CLUSTER, PLACEMENT)
    await serve(kube, [*crds(), *ocm_crds()], kinds)
    names = [name_of(number) for number in range(clusters)]
    labels = {"cluster.open-cluster-management.io/clusterset": "all"}
    await create(kube, [Create(NAMESPACE, typed(NAMESPACE, HUB)), *fleet(range(clusters))])
    for name in names:
        own = {"metadata": {"labels": {**labels, "cluster-name": name}}}
        await kube.patch(MANAGED_CLUSTER, name, own)
    binding = typed(MANAGED_CLUSTER_SET_BINDING, "all", NAMESPACE_OF_WORKLOADS)
    await create(
        kube,
        [
            Create(
                MANAGED_CLUSTER_SET,
                {
                    **typed(MANAGED_CLUSTER_SET, "all"),
                    "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}},
                },
            ),
            Create(MANAGED_CLUSTER_SET_BINDING, {**binding, "spec": {"clusterSet": "all"}}),
            *(Create(MANIFEST_WORK_REPLICA_SET, replica_set(f"app-{n}")) for n in range(workloads)),
            *(
                Create(ADD_ON_PLACEMENT_SCORE, typed(ADD_ON_PLACEMENT_SCORE, SCORE, name))
                for name in names
            ),
        ],
    )
    scores = Scores(kube, clusters, workloads)
    await scores.publish(*range(clusters))
    await create(kube, [Create(PLACEMENT_OPTIMIZATION, optimization(clusters, workloads))])
    return scores


@asynccontextmanager
async def placements(kube: Kube) -> AsyncIterator["Placements"]:
    """Watch the generated Placements while the context lasts."""
    found = Placements(kube)
    watching = asyncio.create_task(found.view.run())
    yield found
    watching.cancel()


class Placements:
    """What each Placement selects, as a watch shows it."""

    def __init__(self, kube: Kube) -> None:
        self._changed = asyncio.Event()
        self.view = View(kube, PLACEMENT, NAMESPACE_OF_WORKLOADS, read=lambda obj: str(obj["spec"]))
        self.view.on_change(lambda _: self._changed.set())

    async def selects(self, app: str, cluster: int) -> None:
        """Wait until the Placement of a workload selects a cluster."""
        await self._until(lambda: self._is_on(app, cluster))

    async def left(self, apps: Sequence[str], cluster: int) -> None:
        """Wait until no Placement of these workloads selects a cluster."""
        await self._until(lambda: not any(self._is_on(app, cluster) for app in apps))

    def _is_on(self, app: str, cluster: int) -> bool:
        spec = self.view.items.get((NAMESPACE_OF_WORKLOADS, f"{app}-placement"), "")
        return name_of(cluster) in spec

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()


@contextmanager
def optimizer(kubeconfig: Path, folder: Path) -> Iterator[None]:
    with (folder / "optimizer.log").open("a") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dsf", "optimizer", f"--kubeconfig={kubeconfig}"),
                *("--port=0", "--auth=none", "--allow-writes", "--log-level=warning"),
                "--default-toleration-seconds=0",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


async def changed_scores(
    scores: Scores, seen: Placements, clusters: int, count: int
) -> list[float]:
    """Return the seconds from each changed score to the Placement that follows it."""
    drawn, found = np.random.default_rng(7), list[float]()
    for _ in range(count):
        await asyncio.sleep(drawn.uniform(0.0, 10.0))
        app = str(drawn.choice(sorted(scores.best)))
        to = (scores.best[app] + int(drawn.integers(1, clusters))) % clusters
        began = time.perf_counter()
        await scores.flip(app, to)
        await seen.selects(app, to)
        found.append(time.perf_counter() - began)
    return found


async def lost_clusters(
    kube: Kube, scores: Scores, seen: Placements, clusters: int, count: int
) -> list[float]:
    """Return the seconds from each taint to the last Placement that leaves the cluster."""
    drawn, found = np.random.default_rng(8), list[float]()
    taint = {"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect"}
    for _ in range(count):
        await asyncio.sleep(drawn.uniform(0.0, 10.0))
        lost = int(drawn.integers(clusters))
        apps = [app for app, best in scores.best.items() if best == lost]
        began = time.perf_counter()
        added = {**taint, "timeAdded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        await kube.patch(MANAGED_CLUSTER, name_of(lost), {"spec": {"taints": [added]}})
        await seen.left(apps, lost)
        found.append(time.perf_counter() - began)
        await kube.patch(MANAGED_CLUSTER, name_of(lost), {"spec": {"taints": None}})
        for app in apps:
            await seen.selects(app, lost)
    return found


def row(what: str, seconds: Sequence[float]) -> str:
    p50, p90 = np.percentile(seconds, (50, 90))
    return f"{what:28} {p50:8.2f} {p90:8.2f} {max(seconds):8.2f}"


async def run(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dsf-bench-"))
    clusters, count = arguments.clusters, arguments.changes
    with control_plane(folder) as plane:
        own = plane.kubeconfig(user="benchmarked-optimizer", group="system:masters")
        async with connect(plane.admin_kubeconfig) as kube:
            scores = await prepare(kube, clusters, arguments.workloads)
            async with placements(kube) as seen:
                with optimizer(own, folder):
                    for app, best in scores.best.items():
                        await seen.selects(app, best)
                    print(f"{clusters} clusters, {len(scores.best)} workloads, {count} times each")
                    print(f"{'seconds to the Placement':28} {'p50':>8} {'p90':>8} {'max':>8}")
                    print(
                        row("a changed score", await changed_scores(scores, seen, clusters, count))
                    )
                    lost = await lost_clusters(kube, scores, seen, clusters, count)
                    print(row("a lost cluster, grace 0 s", lost))


def main() -> None:
    """Measure and print."""
    asyncio.run(run(counts(__doc__, clusters=20, workloads=40, changes=30)))


if __name__ == "__main__":
    main()
