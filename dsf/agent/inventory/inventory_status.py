"""The status of a NodeInventory: what is listed, and in its condition what is not, and why."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dsf.agent.inventory.amounts import quantities
from dsf.agent.inventory.device_classes import list_device_classes
from dsf.agent.inventory.device_pools import PackedSlice
from dsf.agent.inventory.devices import ClaimAllocation, DeviceSummary, summarize_devices
from dsf.agent.inventory.node_capacity import NodeCapacity
from dsf.agent.inventory.node_groups import MAX_BYTES, NOTHING, NodeState, group_nodes, node_state
from dsf.agent.inventory.pod_sums import Key, PodSums, WorkSums
from dsf.agent.inventory.pod_use import EVERYTHING, PodUse
from dsf.api.conditions import Condition, conditions_of, merged
from dsf.api.crd.node_inventory import MAX_NODE_GROUPS, MAX_WORKS, NodeInventoryStatus
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, counted, joined, listed
from dsf.kube.changes import status_patch
from dsf.kube.port import Object

COMPLETE = "Complete"
VALIDITY = timedelta(seconds=180)
"""How long an inventory is relied on after the managed cluster has confirmed it."""

MAX_WORK_BYTES = 384 << 10
_MESSAGES = (1024, 128, 0)
"""Characters of the scheduler's messages; fewer if all are more than MAX_WORK_BYTES."""
_SHOWN = 3
"""Problems that the condition lists; of more it says how many there are."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a status says of one moment, but its times, and whether it is complete."""

    fields: Object
    condition: Condition


@dataclass(frozen=True, slots=True)
class ClusterDevices:
    """What dynamic resource allocation says of a cluster.

    `unknown`: why nothing of it counts, empty if it does or the cluster does not serve it.
    """

    slices: Collection[PackedSlice] = ()
    claims: Collection[ClaimAllocation] = ()
    classes: Collection[Object] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one moment.

    `gaps` say by reason what is not known of it. `works`: of Pods, by namespace and name.
    """

    states: dict[str, NodeState]
    fields: Object
    gaps: dict[str, str]
    devices: ClusterDevices
    works: Mapping[Key, str]


class ClusterState:
    """The nodes and Pods of a cluster as they are kept up to date."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeCapacity] = {}
        self.pods = PodSums()
        self._states: dict[str, NodeState] = {}

    def put_node(self, name: str, node: NodeCapacity | None) -> None:
        """Count a node as it is now; None: it is gone."""
        if node:
            self.nodes[name] = node
        else:
            self.nodes.pop(name, None)
        self.pods.changed.add(name)

    def snapshot(self, unattributed: str = "", devices: ClusterDevices | None = None) -> Snapshot:
        """Return the cluster as it is now; only nodes that have changed are looked at.

        `unattributed`: why no Pod is a ManifestWork's, empty if Pods are told apart.
        """
        for name in self.pods.changed:
            if node := self.nodes.get(name):
                self._states[name] = node_state(node, self.pods.nodes.get(name, NOTHING))
            else:
                self._states.pop(name, None)
        self.pods.changed.clear()
        works, left_out = _works(self.pods)
        others = self.pods.others
        fields = {
            "works": works,
            "others": {
                "running": others.bound,
                "pending": others.unbound,
                "requested": quantities(others.requested.items()),
                "pendingRequested": quantities(others.pending_requested.items()),
            },
            "pendingPods": len(self.pods.pending),
        }
        unlisted = f"the Pods of {counted(left_out, 'ManifestWork')} are not listed by work"
        gaps = {
            "InvalidQuantities": joined(self._unreadable(), _SHOWN, separator="; "),
            "WorksUnknown": unattributed,
            "WorksLeftOut": unlisted if left_out else "",
        }
        by_pod = self.pods.works_by_pod()
        return Snapshot(dict(self._states), fields, gaps, devices or ClusterDevices(), by_pod)

    def _unreadable(self) -> Iterable[str]:
        for name, node in self.nodes.items():
            for problem in node.problems:
                yield f"node {UntrustedName(name)}: {problem}, so none of it counts as there"
        for namespace, name in sorted(self.pods.unreadable):
            pod = self.pods.pods[namespace, name]
            named = (
                "too many resources"
                if EVERYTHING in pod.unreadable
                else listed(pod.unreadable, _SHOWN)
            )
            where = (
                f"all of it counts as taken on node {UntrustedName(pod.node)}"
                if pod.node
                else "not counted"
            )
            yield f"Pod {UntrustedName(f'{namespace}/{name}')} requests unreadable {named}: {where}"


def summarize(snapshot: Snapshot) -> Summary:
    """Return what the inventory says: groups of nodes, and what they leave out."""
    devices, classes, problems = _devices(snapshot)
    states = {
        name: state._replace(devices=devices.nodes.get(name, ()))
        for name, state in snapshot.states.items()
    }
    found = group_nodes(states)
    usable = [state for state in states.values() if state.usable]
    most = dict[str, int]()
    for state in usable:
        for name, free in state.free.items():
            most[name] = max(most.get(name, 0), free)
    fields = {
        "nodes": found.documents,
        "deviceSets": list(devices.sets) or None,
        "deviceClasses": classes or None,
        **snapshot.fields,
        "nodeCount": len(states),
        "readyNodes": len(usable),
        "largestFree": quantities(most.items()),
    }
    left_out, unnamed, merged_ = (
        counted(count, "node") for count in (found.left_out, found.unnamed, found.merged)
    )
    gaps = {
        "NodesLeftOut": found.left_out
        and f"{left_out} of {len(states)} are not listed, because all would be more than"
        f" {MAX_NODE_GROUPS} groups or {MAX_BYTES >> 10} KiB: publish fewer labels",
        **snapshot.gaps,
        "DevicesLeftOut": joined(problems, _SHOWN, separator="; "),
        "NamesLeftOut": found.unnamed and f"{unnamed} with GPUs are listed without names",
        "NodesMerged": found.merged
        and f"{merged_} share groups with similar ones: such a group has the least allocatable and"
        " the most requested of its nodes",
    }
    given = {reason: str(message) for reason, message in gaps.items() if message}
    if not given:
        whole = Condition(COMPLETE, "True", "Inventoried", "All nodes and Pods are counted.")
        return Summary(fields, whole)
    return Summary(
        fields,
        Condition(
            COMPLETE, "False", next(iter(given)), joined(given.values(), len(given), separator=". ")
        ),
    )


def _devices(snapshot: Snapshot) -> tuple[DeviceSummary, list[Object], list[str]]:
    """Return devices by node, DeviceClasses, and what is not counted of both."""
    devices = snapshot.devices
    if devices.unknown:
        return DeviceSummary(), [], [devices.unknown]
    found = summarize_devices(devices.slices, devices.claims, snapshot.works)
    classes, problems = list_device_classes(devices.classes)
    return found, classes, [*found.problems, *problems]


def _works(pods: PodSums) -> tuple[list[Object], int]:
    """Return the Pods by ManifestWork, and how many works are left out."""
    listed = sorted(pods.works)[:MAX_WORKS]
    for limit in _MESSAGES:
        works = [_work(name, pods.works[name], pods.waiting(name), limit) for name in listed]
        sizes = [len(msgspec.json.encode(work)) + 1 for work in works]
        if sum(sizes) <= MAX_WORK_BYTES:
            break
    while sum(sizes) > MAX_WORK_BYTES:
        sizes.pop()
    return works[: len(sizes)], len(pods.works) - len(sizes)


def _work(name: str, sums: WorkSums, waiting: Iterable[PodUse], limit: int) -> Object:
    oldest = min((pod.pending for pod in waiting if pod.pending), default=None)
    why = {}
    if oldest:
        why = {
            "pendingSince": oldest.since,
            "pendingReason": oldest.reason,
            "pendingMessage": oldest.message[:limit],
        }
    return {
        "name": name,
        "running": sums.running,
        "ready": sums.ready,
        "pending": len(sums.pending),
        "requested": quantities(sums.requested.items()),
        **{field: text for field, text in why.items() if text},
    }


def unread(problem: Condition) -> Summary:
    """Return the summary of a cluster whose nodes or Pods can't be read: it has nothing."""
    others = {"observed_time", "valid_until", "conditions"}
    return Summary(NodeInventoryStatus().model_dump(by_alias=True, exclude=others), problem)


TIMES = {"observedTime", "validUntil"}
"""What changes without anything being different."""


def inventory_patch(
    observed: Mapping[str, Any],
    summary: Summary,
    *,
    confirmed: datetime,
    now: datetime,
    publisher: tuple[Condition, ...] = (),
) -> Object:
    """Return the merge patch of the status; empty if all of it is there.

    `confirmed` is when the managed cluster last said what there is; it is valid for VALIDITY from
    then on, one that has nothing for no time. The patch fails with a conflict unless the object is
    still the observed one.
    """
    conditions = merged(conditions_of(observed), (summary.condition, *publisher), now=rfc3339(now))
    until = confirmed + VALIDITY if summary.fields["nodes"] is not None else confirmed
    status = {
        **summary.fields,
        "conditions": conditions,
        "observedTime": rfc3339(confirmed),
        "validUntil": rfc3339(until),
    }
    version = observed["metadata"]["resourceVersion"]
    return status_patch(observed, {"metadata": {"resourceVersion": version}, "status": status})
