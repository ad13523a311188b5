"""Kueue's Workloads: which wait for a worker cluster, which run on one, what they request."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find, is_true
from dsf.api.names import GROUP
from dsf.api.pod_spec import PodSpec, read_part
from dsf.api.times import read_time
from dsf.api.untrusted_text import InvalidInput, listed
from dsf.kube.port import Object

NOMINATED = f"{GROUP}/Nominated"
"""The type of the condition of a Workload that says which clusters are nominated, and why."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

PodSet = tuple[int, Mapping[str, float]]
"""How many Pods there are, and what each of them requests."""


class WaitingWorkload(NamedTuple):
    """A Workload that has quota on the manager cluster and waits for an admission check.

    `checks`: the names of its pending admission checks. `told` and `since`: the message of the
    condition Nominated and when it was written; None if there is none since the quota was reserved.
    """

    obj: Object
    queue: tuple[str, str]
    priority: int
    created: str
    checks: Sequence[str]
    nominated: tuple[str, ...]
    pod_sets: tuple[PodSet, ...]
    told: str
    since: datetime | None

    @property
    def is_told(self) -> bool:
        """Whether the condition is about the clusters that are nominated."""
        return self.told.startswith(f"{first_sentence(self.nominated)} ")


def first_sentence(clusters: Sequence[str]) -> str:
    """Return the first sentence of the condition's message, which says what is nominated."""
    return f"Nominated: {listed(clusters)}." if clusters else "No worker cluster is eligible."


class AssignedWorkload(NamedTuple):
    """A Workload that a worker cluster has admitted, and since when."""

    cluster: str
    queue: tuple[str, str]
    pod_sets: tuple[PodSet, ...]
    since: datetime


def read_workload(obj: Object) -> WaitingWorkload | AssignedWorkload | None:
    """Return what decides about a Workload; None if it neither waits nor runs elsewhere."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    reserved = find(conditions_of(obj), "QuotaReserved") or {}
    if (
        metadata.get("deletionTimestamp")
        or reserved.get("status") != "True"
        or is_true(obj, "Finished")
    ):
        return None
    pod_sets = tuple(_pod_sets(spec.get("podSets") or ()))
    queue = (str(metadata["namespace"]), str(spec.get("queueName") or ""))
    checks = status.get("admissionChecks") or ()
    if cluster := status.get("clusterName"):
        times = [read_time(check.get("lastTransitionTime")) or LONG_AGO for check in checks]
        return AssignedWorkload(cluster, queue, pod_sets, max(times, default=LONG_AGO))
    pending = [check["name"] for check in checks if check.get("state") == "Pending"]
    if not pending:
        return None
    told = find(conditions_of(obj), NOMINATED) or {}
    since = read_time(told.get("lastTransitionTime"))
    began = read_time(reserved.get("lastTransitionTime")) or LONG_AGO
    current = since is not None and since >= began
    return WaitingWorkload(
        obj,
        queue,
        int(spec.get("priority") or 0),
        str(metadata.get("creationTimestamp") or ""),
        pending,
        tuple(status.get("nominatedClusterNames") or ()),
        pod_sets,
        str(told.get("message") or "") if current else "",
        since if current else None,
    )


def _pod_sets(listed: Sequence[Mapping[str, Any]]) -> list[PodSet]:
    """Return the sets of Pods whose requests can be read; Kueue has accepted them all."""
    found = list[PodSet]()
    for item in listed:
        template = (item.get("template") or {}).get("spec") or {}
        spec = read_part(PodSpec, template, "template.spec")
        if not isinstance(spec, InvalidInput):
            found.append((int(item.get("count") or 0), spec.requested()))
    return found
