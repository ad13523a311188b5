"""After an outage of a real API server or its etcd, nothing is lost or written twice.

The tests have their own control plane, because an outage affects everything on the hub.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.api.crd.definitions import crds
from dsf.hub.run import HubController, HubOptions
from dsf.kube.apply import apply
from dsf.kube.changes import Create
from dsf.kube.client.connect import connect
from dsf.kube.errors import KubeError
from dsf.kube.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
    NAMESPACE,
)
from dsf.kube.resources.ocm import ocm_crds
from tests.eventually import eventually

from .harness.control_plane import ControlPlane, start_etcd
from .harness.ports import Ports
from .harness.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dsf.kube.kinds import Kind
    from dsf.kube.port import Kube, Object

    from .build import Assets

HUB = "open-cluster-management"
WORK = "dynamic-scoring-config-manifestwork"
CLUSTERS = [f"c{number}" for number in range(20)]


@pytest.fixture
def etcd_and_plane(hub_assets: Assets, tmp_path: Path) -> Iterator[tuple[str, ControlPlane]]:
    """A bare API server, and the address of its etcd."""
    processes, ports = Processes(tmp_path), Ports()
    try:
        etcd = start_etcd(processes, hub_assets, ports, tmp_path)
        plane = ControlPlane("hub", processes, hub_assets, ports, tmp_path)
        plane.start(etcd)
        plane.wait_ready()
        yield etcd, plane
        plane.api.close()
    finally:
        processes.close()


@contextmanager
def api_server_away(etcd: str, plane: ControlPlane) -> Iterator[None]:
    """Kill the API server, and start it again at the end."""
    plane.processes.kill("hub-kube-apiserver")
    yield
    plane.start(etcd)


@contextmanager
def etcd_away(etcd: str, plane: ControlPlane) -> Iterator[None]:
    """Stop etcd, and start it again at the end: the API server stays."""
    plane.processes.stop("etcd")
    yield
    start_etcd(plane.processes, plane.assets, plane.ports, plane.directory.parent, etcd)


@pytest.mark.fire(
    "after faults of the API server the hub is as without them",
    "a real API server killed, and its etcd restarted",
)
@pytest.mark.parametrize("away", [api_server_away, etcd_away])
async def test_what_goes_and_comes_back_loses_nothing(
    etcd_and_plane: tuple[str, ControlPlane],
    away: Callable[[str, ControlPlane], AbstractContextManager[None]],
) -> None:
    etcd, plane = etcd_and_plane
    async with connect(plane.admin_kubeconfig) as kube:
        await prepare(kube)
        options = HubOptions(resync_seconds=1.0, probe_seconds=1.0)
        controller = HubController(kube, options, registry=CollectorRegistry())
        task = asyncio.create_task(controller.run())
        await eventually(lambda: told(kube, interval=30), every=0.1, ignoring=KubeError)
        before = await generations(kube)
        with away(etcd, plane):
            await asyncio.sleep(3)  # several resyncs
        await asyncio.to_thread(plane.wait_ready)
        await eventually(lambda: changed(kube, interval=60), every=0.1, ignoring=KubeError)
        await eventually(lambda: told(kube, interval=60), every=0.1, ignoring=KubeError)
        await eventually(lambda: ready(kube), every=0.1, ignoring=KubeError)
        assert await generations(kube) == {name: number + 1 for name, number in before.items()}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def prepare(kube: Kube, clusters: Sequence[str] = CLUSTERS) -> None:
    """Put the CRDs, the clusters, the config and a scorer there."""
    definitions = [*crds(), *ocm_crds()]
    await created(kube, CUSTOM_RESOURCE_DEFINITION, *definitions)
    for kind in (DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK, MANAGED_CLUSTER_ADD_ON):
        await eventually(lambda kind=kind: served(kube, kind), every=0.1, ignoring=KubeError)
    await created(kube, NAMESPACE, *(named(name) for name in [HUB, *clusters]))
    accepted = {"spec": {"hubAcceptsClient": True}}
    await created(kube, MANAGED_CLUSTER, *(named(name, **accepted) for name in clusters))
    add_on = "dynamic-scoring-framework"
    await created(
        kube,
        MANAGED_CLUSTER_ADD_ON,
        *(named(add_on, name, spec={"installNamespace": "x"}) for name in clusters),
    )
    await created(kube, DYNAMIC_SCORING_CONFIG, named("dynamic-scoring-config", HUB, spec={}))
    spec = {
        "description": "own",
        # Nobody answers there: an API that only managed clusters reach.
        "configURL": "http://127.0.0.1:1/config",
        "configSyncMode": "None",
        "location": "Internal",
        "source": {"type": "None"},
        "scoring": {"path": "/own", "params": {"name": "own", "interval": 30}},
        "scoreDestination": "AddOnPlacementScore",
        "scoreDimensionFormat": "${app}",
    }
    await created(kube, DYNAMIC_SCORER, named("own", HUB, spec=spec))


async def created(kube: Kube, kind: Kind, *objects: Object) -> None:
    """Create objects of a kind."""
    for outcome in await apply(kube, [Create(kind, obj) for obj in objects]):
        assert outcome.error is None, outcome


def named(name: str, namespace: str | None = None, **fields: Any) -> Object:
    """Return an object of that name."""
    where = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **where}, **fields}


async def served(kube: Kube, kind: Kind) -> bool:
    """Whether a kind is served."""
    await kube.list(kind, limit=1)
    return True


async def works(kube: Kube) -> dict[str, Object]:
    """Return our works by cluster."""
    found = (await kube.list(MANIFEST_WORK, fields=f"metadata.name={WORK}")).items
    return {work["metadata"]["namespace"]: work for work in found}


async def told(kube: Kube, interval: int) -> bool:
    """Return whether every cluster's summary has this scoring interval."""
    text = f'"scoringInterval": {interval}'
    texts = [
        work["spec"]["workload"]["manifests"][1]["data"]["summaries"]
        for work in (await works(kube)).values()
    ]
    return len(texts) == len(CLUSTERS) and all(text in each for each in texts)


async def changed(kube: Kube, interval: int) -> bool:
    """Set the scoring interval of every cluster."""
    params = {"name": "own", "interval": interval}
    await kube.patch(DYNAMIC_SCORER, "own", {"spec": {"scoring": {"params": params}}}, HUB)
    return True


async def generations(kube: Kube) -> dict[str, int]:
    """Return how often each work's spec was written."""
    return {name: work["metadata"]["generation"] for name, work in (await works(kube)).items()}


async def ready(kube: Kube) -> bool:
    """Whether the config says that all is well."""
    config = await kube.get(DYNAMIC_SCORING_CONFIG, "dynamic-scoring-config", HUB)
    status = config.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    return status.get("clusters") == len(CLUSTERS) and conditions["Ready"] == "True"
