"""Simulated kube-scheduler and kubelet: binds Pods to the first node with room, and runs them.

It knows requests and nothing else: no affinity, taints, priorities or claims.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/
"""

from collections.abc import Iterable, Mapping

from dsf.agent.inventory.amounts import add
from dsf.agent.inventory.node_capacity import NodeReader
from dsf.agent.inventory.pod_use import pod_requests
from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import POD
from dsf.kube.port import Object


def schedule(nodes: Iterable[Object], pods: Iterable[Object], *, now: str) -> list[Change]:
    """Return the changes that bind and start Pods, and that say why others are pending.

    `now` is RFC 3339.
    """
    read = NodeReader()
    free = {node["metadata"]["name"]: dict(read(node).allocatable) for node in nodes}
    waiting = []
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        if node in free:
            add(free[node], _requested(pod).items(), -1)
        elif not node:
            waiting.append(pod)
    return [change for pod in waiting for change in _placed(pod, free, now)]


def _placed(pod: Object, free: Mapping[str, dict[str, int]], now: str) -> list[Change]:
    wanted = _requested(pod)
    short = {
        node: [name for name, amount in wanted.items() if amount > left.get(name, 0)]
        for node, left in free.items()
    }
    node = next((name for name, lacking in short.items() if not lacking), None)
    if node is None:
        return _pending(pod, short)
    add(free[node], wanted.items(), -1)
    metadata = pod["metadata"]
    bound = Patch(POD, metadata["name"], metadata["namespace"], {"spec": {"nodeName": node}})
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "Ready")
    ]
    return [bound, _status(pod, {"phase": "Running", "startTime": now, "conditions": conditions})]


def _pending(pod: Object, short: Mapping[str, list[str]]) -> list[Change]:
    counts = dict[str, int]()
    for lacking in short.values():
        for resource in lacking:
            counts[resource] = counts.get(resource, 0) + 1
    why = ", ".join(f"{count} Insufficient {resource}" for resource, count in counts.items())
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"0/{len(short)} nodes are available: {why}.",
    }
    status = {"phase": "Pending", "conditions": [condition]}
    return [] if pod.get("status") == status else [_status(pod, status)]


def _requested(pod: Object) -> dict[str, int]:
    return pod_requests(pod["spec"], pod.get("status") or {})[0]


def _status(pod: Object, status: Object) -> Change:
    metadata = pod["metadata"]
    return Patch(POD, metadata["name"], metadata["namespace"], {"status": status}, "status")
