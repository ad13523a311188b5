"""NodeInventories that tell of the Pods of ManifestWorks."""

from datetime import datetime, timedelta

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.port import Kube, Object
from tests.dsf.sim.builders import NOW, make

OLDER = NOW - timedelta(hours=1)
VALIDITY = timedelta(minutes=3)
NO_NODE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."

MIG = {"nvidia.com/mig-3g.48gb": "2", "nvidia.com/mig-2g.24gb": "3"}
NODE = {"cpu": "64", "memory": "256Gi", "pods": "110", **MIG}
"""What the node of each cluster has: what the guide's policies of these layouts supply."""


def counted(
    running: int,
    ready: int,
    pending: int = 0,
    reason: str = "Unschedulable",
    *,
    name: str = "mwrs-app01",
    since: datetime = OLDER,
) -> Object:
    """Return the Pods of one ManifestWork."""
    why = {"pendingReason": reason, "pendingMessage": NO_NODE, "pendingSince": rfc3339(since)}
    counts = {"name": name, "running": running, "ready": ready, "pending": pending}
    return {**counts, "requested": {}, **(why if pending else {})}


def inventory(
    *works: Object, cluster: str = "worker01", until: datetime = NOW + VALIDITY
) -> Object:
    """Return a NodeInventory with these ManifestWorks."""
    complete = {"type": "Complete", "status": "True", "reason": "Inventoried", "message": ""}
    conditions = [{**complete, "lastTransitionTime": rfc3339(OLDER)}]
    status = {
        "observedTime": rfc3339(until - VALIDITY),
        "validUntil": rfc3339(until),
        "nodes": [{"count": 1, "ready": True, "allocatable": NODE, "requested": {}}],
        "works": list(works),
        "conditions": conditions,
    }
    return make(kinds.NODE_INVENTORY, cluster, cluster, status=status)


async def publish(
    hub: Kube, *works: Object, cluster: str = "worker01", now: datetime = NOW
) -> None:
    """Let the agent of a cluster tell of its Pods."""
    found = inventory(*works, cluster=cluster, until=now + VALIDITY)
    there = (await hub.list(kinds.NODE_INVENTORY, cluster)).items
    if not there:
        await hub.create(kinds.NODE_INVENTORY, {**found, "status": {}})
    body = {"status": found["status"]}
    await hub.patch(kinds.NODE_INVENTORY, cluster, body, cluster, subresource="status")


async def renew(hub: Kube, now: datetime) -> None:
    """Let all agents confirm what they told."""
    times = {"observedTime": rfc3339(now), "validUntil": rfc3339(now + VALIDITY)}
    for item in (await hub.list(kinds.NODE_INVENTORY)).items:
        name = item["metadata"]["name"]
        body = {"status": times}
        await hub.patch(kinds.NODE_INVENTORY, name, body, name, subresource="status")
