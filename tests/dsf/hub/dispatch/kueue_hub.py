"""An embedded hub with Kueue's kinds, and what Kueue's manager and OCM write there."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.definitions import crds
from dsf.api.times import rfc3339
from dsf.hub.dispatch.kueue_configuration import DISPATCHER, DISPATCHING
from dsf.hub.dispatch.queue_preferences import PREFERENCES_ANNOTATION
from dsf.hub.dispatch.workloads import NOMINATED
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    ADMISSION_CHECK,
    CONFIG_MAP,
    EVENT,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    MULTI_KUEUE_CLUSTER,
    MULTI_KUEUE_CONFIG,
    NAMESPACE,
    NODE_INVENTORY,
    WORKLOAD,
    Kind,
)
from dsf.kube.port import Kube, Object
from tests.kube_wrappers.applying import Applying, Owned
from tests.objects_with_status import create_with_status

START = "2026-11-20T00:00:00Z"
LATER = "2026-11-21T00:00:00Z"
SCORE = "carbon"
GREEN = f'[{{"addonPlacementScore": "{SCORE}"}}]'


def clock() -> datetime:
    """The time of the event loop, which starts at START."""
    return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=asyncio.get_running_loop().time())


def definition(kind: Kind) -> Object:
    """A CRD with of Kueue's schema what decides how a status is merged."""
    free: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"type": "array", "maxItems": 20, "items": {"type": "string"}}
    keyed: Object = {"type": "array", "items": free, "x-kubernetes-list-type": "map"}
    condition = {**free, "properties": {"type": {"type": "string"}}, "required": ["type"]}
    conditions = {**keyed, "items": condition, "x-kubernetes-list-map-keys": ["type"]}
    status = {
        **free,
        "properties": {"nominatedClusterNames": names, "conditions": conditions},
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.clusterName) || !has(self.nominatedClusterNames)"
                " || size(self.nominatedClusterNames) == 0",
                "message": "clusterName and nominatedClusterNames are mutually exclusive",
            }
        ],
    }
    schema = {"type": "object", "properties": {"spec": free, "status": status}}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


class KueueHub(EmbeddedHub):
    """An embedded hub to which statuses are applied; all who do so share what is owned."""

    def __init__(self) -> None:
        super().__init__(crds=(*crds(), *map(definition, KUEUE)), now=clock)
        self.owned = Owned()

    def applying(self, kube: Kube | None = None) -> Applying:
        """A client that applies statuses, through a wrapper or directly."""
        return Applying(kube or self, self.owned)


KUEUE = (ADMISSION_CHECK, LOCAL_QUEUE, MULTI_KUEUE_CLUSTER, MULTI_KUEUE_CONFIG, WORKLOAD)


async def kueue_hub(
    clusters: Iterable[str] = ("east", "north", "west"),
    *,
    annotation: str | None = GREEN,
    dispatcher: str = DISPATCHER,
) -> KueueHub:
    """A hub with Kueue, and with worker clusters that are managed clusters, too."""
    hub = KueueHub()
    for name in ("kueue-system", "team", *clusters):
        await hub.create(NAMESPACE, {"metadata": {"name": name}})
    text = yaml.safe_dump({"multiKueue": {"dispatcherName": dispatcher}})
    config = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    data = {"controller_manager_config.yaml": text}
    await hub.create(CONFIG_MAP, CONFIG_MAP.object(metadata=config, data=data))
    annotations = {} if annotation is None else {PREFERENCES_ANNOTATION: annotation}
    queue = {"name": "user-queue", "namespace": "team", "annotations": annotations}
    await hub.create(LOCAL_QUEUE, LOCAL_QUEUE.object(metadata=queue, spec={}))
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": {"name": "fleet"}}
    obj = ADMISSION_CHECK.object(metadata=named("multi"), spec=check)
    await create_with_status(
        hub, ADMISSION_CHECK, {**obj, "status": {"conditions": [condition("Active")]}}
    )
    spec = {"clusters": list(clusters)}
    await hub.create(
        MULTI_KUEUE_CONFIG, MULTI_KUEUE_CONFIG.object(metadata=named("fleet"), spec=spec)
    )
    for name in clusters:
        worker = MULTI_KUEUE_CLUSTER.object(
            metadata=named(name), spec={"clusterSource": {"kubeConfig": {"location": name}}}
        )
        await hub.create(MULTI_KUEUE_CLUSTER, worker)
        await add_managed(hub, name)
    return hub


def named(name: str, namespace: str = "") -> Object:
    return {"name": name, **({"namespace": namespace} if namespace else {})}


async def add_managed(hub: EmbeddedHub, name: str) -> None:
    spec = {"hubAcceptsClient": True}
    await hub.create(MANAGED_CLUSTER, MANAGED_CLUSTER.object(metadata=named(name), spec=spec))


async def publish(hub: EmbeddedHub, until: str = LATER, **values: int) -> None:
    """Publish a score of each cluster with one entry."""
    for cluster, value in values.items():
        status = {"scores": [{"name": "value", "value": value}], "validUntil": until}
        obj = ADD_ON_PLACEMENT_SCORE.object(metadata=named(SCORE, cluster), status=status)
        if await exists(hub, ADD_ON_PLACEMENT_SCORE, SCORE, cluster):
            body = {"status": status}
            await hub.patch(ADD_ON_PLACEMENT_SCORE, SCORE, body, cluster, subresource="status")
        else:
            await create_with_status(hub, ADD_ON_PLACEMENT_SCORE, obj)


async def exists(hub: EmbeddedHub, kind: Kind, name: str, namespace: str) -> bool:
    page = await hub.list(kind, namespace)
    return any(item["metadata"]["name"] == name for item in page.items)


async def add_room(
    hub: EmbeddedHub, seconds_ago: float = 0, now: datetime | None = None, **cpus: int
) -> None:
    """Report free processors of clusters, on one node each."""
    observed = rfc3339((now or clock()) - timedelta(seconds=seconds_ago))
    until = rfc3339(now + timedelta(hours=1)) if now else LATER
    for cluster, cpu in cpus.items():
        nodes = [
            {
                "count": 1,
                "ready": True,
                "allocatable": {"cpu": str(cpu), "pods": "110"},
                "requested": {},
            }
        ]
        status = {"observedTime": observed, "validUntil": until, "nodes": nodes}
        obj = NODE_INVENTORY.object(metadata=named(cluster, cluster), status=status)
        await create_with_status(hub, NODE_INVENTORY, obj)


async def send_queues(hub: EmbeddedHub, cluster: str, cpu: str | int, **spec: Any) -> None:
    """OCM's Kueue add-on sends a worker cluster its queues, with a quota of processors."""
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    manifests = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": named("kueue"),
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": named("cluster-queue"),
            "spec": {"resourceGroups": groups, **spec},
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": named("user-queue", "team"),
            "spec": {"clusterQueue": "cluster-queue"},
        },
    ]
    work = named("addon-multicluster-kueue-manager-deploy-0", cluster)
    content = {"workload": {"manifests": manifests}}
    await hub.create(MANIFEST_WORK, MANIFEST_WORK.object(metadata=work, spec=content))


async def queue(hub: EmbeddedHub, name: str, cpu: str = "1", priority: int = 0) -> None:
    """Kueue has reserved the quota of a Workload, which now waits for MultiKueue."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    spec = {"queueName": "user-queue", "priority": priority, "podSets": [pod_set]}
    await hub.create(WORKLOAD, WORKLOAD.object(metadata=named(name, "team"), spec=spec))
    await kueue_writes(
        hub,
        name,
        conditions=[condition("QuotaReserved")],
        admissionChecks=[{"name": "multi", "state": "Pending", "lastTransitionTime": START}],
    )


def condition(type_: str, status: str = "True") -> Object:
    told = {"reason": type_, "message": "", "lastTransitionTime": START}
    return {"type": type_, "status": status, **told}


async def kueue_writes(hub: EmbeddedHub, name: str, **status: Any) -> None:
    await hub.patch(WORKLOAD, name, {"status": status}, "team", subresource="status")


async def admit(hub: KueueHub, name: str, cluster: str) -> None:
    """As Kueue does it: it gives up the nominations that were applied in its name."""
    workload = await hub.get(WORKLOAD, name, "team")
    assert cluster in nominated(workload)
    at = named(name, "team")
    obj = WORKLOAD.object(metadata=at, status={"clusterName": cluster})
    admitted = await hub.applying().apply_status(WORKLOAD, obj, manager="kueue-admission")
    assert nominated(admitted) == []


def nominated(workload: Mapping[str, Any]) -> list[str]:
    return list(workload["status"].get("nominatedClusterNames") or ())


async def all_nominated(hub: EmbeddedHub) -> dict[str, list[str]]:
    page = await hub.list(WORKLOAD, "team")
    return {item["metadata"]["name"]: nominated(item) for item in page.items}


async def told(hub: EmbeddedHub, name: str = "job") -> str:
    """The message of the condition of a Workload."""
    workload = await hub.get(WORKLOAD, name, "team")
    return str((find(conditions_of(workload), NOMINATED) or {}).get("message", ""))


async def dispatching_condition(hub: EmbeddedHub) -> tuple[str, str, str]:
    """Status, reason and message of the dispatcher's condition of the admission check."""
    found = find(conditions_of(await hub.get(ADMISSION_CHECK, "multi")), DISPATCHING) or {}
    return str(found.get("status")), str(found.get("reason")), str(found.get("message"))


async def events(hub: EmbeddedHub, namespace: str = "team") -> list[tuple[str, str, str]]:
    page = await hub.list(EVENT, namespace)
    return [(item["type"], item["reason"], item["message"]) for item in page.items]
