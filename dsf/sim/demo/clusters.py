"""The demo's clusters: an embedded hub, managed clusters, and the objects they start with."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from dsf.api.names import AGENT_NAMESPACE, APP, HUB_NAMESPACE, REQUEST_AMOUNT, REQUEST_KIND
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.port import Object
from dsf.sim.controllers.registration import join
from dsf.sim.demo.processes import DemoError

WORKLOAD_NAMESPACE = "default"

_ALLOCATABLE = {"cpu": "16", "memory": "64Gi", "pods": "110"}
"""What the node of a managed cluster has before its GPU is configured."""

ClusterLabels = Mapping[str, Mapping[str, str]]
"""The labels of each managed cluster, and of its node, by its name."""


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """One API server of the demo: `kube` in memory, `url` and `kubeconfig` over HTTP."""

    name: str
    kube: EmbeddedHub
    url: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True)
class DemoClusters:
    """The hub and its managed clusters."""

    hub: DemoCluster
    managed: tuple[DemoCluster, ...]


@asynccontextmanager
async def serving_clusters(
    work_dir: Path, labels: ClusterLabels, node: Callable[[str], list[Change]] | None = None
) -> AsyncIterator[DemoClusters]:
    """Serve a hub and its managed clusters on loopback, and write a kubeconfig for each.

    `node` returns what makes the node of a cluster; by default it is one without a GPU.
    """
    async with AsyncExitStack() as stack:
        hub = await _cluster("hub", work_dir, stack)
        managed = [await _cluster(name, work_dir, stack) for name in labels]
        await apply_or_fail(hub.kube, _hub_objects(labels))
        for cluster in managed:
            nodes = node(cluster.name) if node else _node(cluster.name, labels)
            await apply_or_fail(cluster.kube, [*_namespaces(cluster.name), *nodes])
        yield DemoClusters(hub, tuple(managed))


async def apply_or_fail(kube: EmbeddedHub, changes: Iterable[Change]) -> None:
    """Apply changes; raise DemoError for the first that is refused."""
    for outcome in await apply(kube, changes):
        if outcome.error is not None:
            raise DemoError(f"{outcome.change}: {outcome.error}")


async def _cluster(name: str, work_dir: Path, stack: AsyncExitStack) -> DemoCluster:
    kube = EmbeddedHub()
    url = await stack.enter_async_context(serving(kube))
    path = work_dir / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
    return DemoCluster(name, kube, url, path)


def _hub_objects(labels: ClusterLabels) -> list[Change]:
    binding = _object(kinds.MANAGED_CLUSTER_SET_BINDING, "default", WORKLOAD_NAMESPACE)
    return [
        Create(kinds.NAMESPACE, _object(kinds.NAMESPACE, HUB_NAMESPACE)),
        *(
            change
            for name, own in labels.items()
            for change in join(name, {"cluster-name": name, **own}, now=rfc3339(utc_now()))
        ),
        Create(kinds.MANAGED_CLUSTER_SET_BINDING, {**binding, "spec": {"clusterSet": "default"}}),
    ]


def replica_set(name: str, app: str, gpus: int, manifest: Object) -> Object:
    """Return the ManifestWorkReplicaSet of a workload that needs GPUs, with a Placement to come."""
    labels = {APP: app, REQUEST_KIND: "gpu", REQUEST_AMOUNT: str(gpus)}
    return kinds.MANIFEST_WORK_REPLICA_SET.object(
        metadata={"name": name, "namespace": WORKLOAD_NAMESPACE, "labels": labels},
        spec={
            "placementRefs": [{"name": f"{name}-placement", "rolloutStrategy": {"type": "All"}}],
            "manifestWorkTemplate": {"workload": {"manifests": [manifest]}},
        },
    )


def _namespaces(cluster: str) -> list[Change]:
    return [
        Create(kinds.NAMESPACE, _object(kinds.NAMESPACE, name))
        for name in (AGENT_NAMESPACE, cluster)
    ]


def _node(cluster: str, labels: ClusterLabels) -> list[Change]:
    node = _object(kinds.NODE, f"{cluster}-control-plane")
    node["metadata"]["labels"] = dict(labels[cluster])
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": _ALLOCATABLE}
    return [
        Create(kinds.NODE, node),
        Patch(kinds.NODE, node["metadata"]["name"], None, {"status": ready}, "status"),
    ]


def _object(kind: kinds.Kind, name: str, namespace: str | None = None) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return kind.object(metadata=metadata)
