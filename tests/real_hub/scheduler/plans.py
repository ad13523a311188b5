"""What an agent reports of a laid out cluster, and what the optimizer places there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dsf.agent.inventory.inventory_publisher import new_inventory
from dsf.agent.inventory.inventory_status import inventory_patch
from dsf.agent.inventory.watch import InventoryWatch
from dsf.kube import kinds
from dsf.kube.client.connect import connect
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest
from tests.optimizer.build import managed_cluster, obj, score
from tests.optimizer.hubs import hub_of

from .layouts import claim_templates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsf.agent.inventory.inventory_status import Summary

    from ..harness.api import Object
    from ..harness.scheduled import ScheduledCluster
    from .layouts import Layout, PodSet


def plan(cluster: ScheduledCluster, layout: Layout, **fields: str) -> Plan:
    """The optimizer's plan for a layout's workloads, with what an agent reports of the cluster.

    ``fields`` are those of the cluster in the request. The hub is in memory.
    """
    return asyncio.run(_plan(cluster, layout, fields))


async def _plan(cluster: ScheduledCluster, layout: Layout, fields: Mapping[str, str]) -> Plan:
    name = cluster.name
    hub = await hub_of(
        Observation(
            managed_clusters=(managed_cluster(name, cluster_name=name),),
            policies=(),
            workloads=tuple(map(replica_set, layout.workloads)),
            scores=(score(name, "fit", {"another;all": 1}),),
        )
    )
    summary, now = await summary_of(cluster), datetime.now(UTC)
    created = await hub.create(kinds.NODE_INVENTORY, new_inventory(name))
    patch = inventory_patch(created, summary, confirmed=now, now=now)
    await hub.patch(kinds.NODE_INVENTORY, name, patch, name, subresource="status")
    request = OptimizeRequest.model_validate(
        {
            "namespace": "default",
            "clusters": [{"name": name, **fields}],
            "targetWorkloads": [{"name": item.name} for item in layout.workloads],
            "preference": {"addonPlacementScore": "fit"},
            "missingScore": 1,
        }
    )
    made = await Optimizer(hub, now=lambda: datetime.now(UTC)).plan(request)
    assert isinstance(made, Plan), made
    return made


async def summary_of(cluster: ScheduledCluster) -> Summary:
    """What an agent on the cluster has to report."""
    async with connect(cluster.admin_kubeconfig) as kube:
        watch = InventoryWatch(kube)
        watching = asyncio.create_task(watch.run())
        try:
            return await watch.first_summary()
        finally:
            watching.cancel()


def replica_set(item: PodSet) -> Object:
    """The ManifestWorkReplicaSet that deploys a workload's Pods."""
    devices = sum(count for key, count in item.amounts.items() if "/" in key) + bool(item.claim)
    kind, amount = ("gpu", devices) if devices else ("pods", 1)
    labels = {
        "app": item.name,
        "resource-request-kind": kind,
        "resource-request-amount": str(amount * item.count),
    }
    manifests = [*claim_templates(), *item.objects()]
    reference = {"name": item.name, "rolloutStrategy": {"type": "All"}}
    template = {"workload": {"manifests": manifests}}
    spec = {"placementRefs": [reference], "manifestWorkTemplate": template}
    return obj(kinds.MANIFEST_WORK_REPLICA_SET, item.name, "default", labels=labels, spec=spec)
