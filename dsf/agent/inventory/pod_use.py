"""What a Pod requests and where, as kube-scheduler counts it.

Source: `PodRequests` in resource/helpers.go of k8s.io/component-helpers 0.35, with the options of
kube-scheduler: it counts what containers have while they are resized.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dsf.agent.inventory.amounts import MAX_RESOURCES, ONE, Amounts, OneOfEach, pairs, read_amount
from dsf.api.conditions import find, is_true
from dsf.api.pod_spec import PODS, summed_requests
from dsf.kube.port import Object

EVERYTHING = "*"
"""Stands for all resources, of a Pod with so many that they are not listed."""

MESSAGE_LIMIT = 1024

_JOB_SET = "jobset.sigs.k8s.io/jobset-name"
_JOB_OF_CRON_JOB = re.compile(r"(.+)-\d+")

NamedOwner = tuple[str, str, str]
"""Namespace, qualified resource and name, of an owner whose uid a Pod does not name."""


class PodOwner(NamedTuple):
    """Who made a Pod: `uid` of its controller (of itself without one), and whose that one is.

    A ReplicaSet is its Deployment's, a Job its CronJob's or its JobSet's.
    """

    uid: str
    named: NamedOwner | None = None


class PendingPod(NamedTuple):
    """Since when a Pod is pending (RFC 3339), and why as far as its status says."""

    since: str
    reason: str = ""
    message: str = ""


class PodUse(NamedTuple):
    """A Pod that has not ended. `unreadable` are resources whose amount can't be believed.

    `node` is empty until it is bound. Equal parts of all Pods are stored once.
    """

    node: str
    requests: Amounts
    unreadable: tuple[str, ...]
    owner: PodOwner
    running: bool
    ready: bool
    pending: PendingPod | None


NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the Pods that hold what they request, as kube-scheduler's own informer has."""


class PodReader:
    """Reads Pods; equal requests and owners become one value, because 100,000 Pods have few."""

    def __init__(self) -> None:
        self._amounts = OneOfEach[Amounts]()
        self._owners = OneOfEach[PodOwner]()

    def __call__(self, pod: Object) -> PodUse:
        """Return what the inventory keeps of a Pod."""
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        total, unreadable = pod_requests(spec, status)
        phase = status.get("phase") or "Pending"
        return PodUse(
            sys.intern(str(spec.get("nodeName") or "")),
            self._amounts(pairs(total)),
            unreadable,
            self._owners(owner_of(pod["metadata"])),
            running=phase == "Running",
            ready=is_true(pod, "Ready"),
            pending=_pending(pod["metadata"], status) if phase == "Pending" else None,
        )


def pod_requests(
    spec: Mapping[str, Any], status: Mapping[str, Any]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return what a Pod requests, itself as one of `pods` included, and unreadable resources."""
    reader = _ContainerReader(status)
    starting = []
    for container in spec.get("initContainers") or ():
        runs_on = container.get("restartPolicy") == "Always"
        starting.append((runs_on, reader.requests(container, resizable=runs_on)))
    stated = spec.get("resources") or {}
    total = summed_requests(
        [reader.requests(container) for container in spec.get("containers") or ()],
        starting,
        limits=reader.read(stated.get("limits")),
        requests=reader.read(stated.get("requests")),
        overhead=reader.read(spec.get("overhead")),
    )
    total[PODS] = ONE
    if len(total) + len(reader.unreadable) > MAX_RESOURCES:
        return {PODS: ONE}, (EVERYTHING,)
    return total, tuple(sorted(reader.unreadable))


class _ContainerReader:
    """Reads what containers of a Pod request, and notes the resources that are `unreadable`."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        self.unreadable: set[str] = set()
        resizing = find(status.get("conditions") or (), "PodResizePending") or {}
        self._infeasible = resizing.get("reason") == "Infeasible"
        self._statuses = {
            str(one.get("name")): one
            for field in ("containerStatuses", "initContainerStatuses")
            for one in status.get(field) or ()
        }

    def requests(self, container: Mapping[str, Any], *, resizable: bool = True) -> dict[str, int]:
        """Return what a container requests; while it is resized, the most of before and after."""
        resources = container.get("resources") or {}
        # The API server sets requests to limits where they are missing.
        wanted = self.read({**(resources.get("limits") or {}), **(resources.get("requests") or {})})
        now = self._statuses.get(str(container.get("name"))) or {}
        if not resizable or now.get("resources") is None:
            return wanted
        parts = [
            self.read(now["resources"].get("requests")),
            self.read(now.get("allocatedResources")),
            {} if self._infeasible else wanted,
        ]
        names = set[str]().union(*parts)
        return {name: max(part.get(name, 0) for part in parts) for name in names}

    def read(self, quantities: Mapping[str, Any] | None) -> dict[str, int]:
        """Return the amounts that are readable."""
        found = dict[str, int]()
        for name, quantity in (quantities or {}).items():
            amount = read_amount(quantity)
            if amount is None:
                self.unreadable.add(name)
            else:
                found[sys.intern(name)] = amount
        return found


def owner_of(metadata: Mapping[str, Any]) -> PodOwner:
    """Return who made a Pod."""
    references: Iterable[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    controller = next((one for one in references if one.get("controller")), None)
    if controller is None:
        return PodOwner(str(metadata.get("uid") or ""))
    kind, name = controller.get("kind"), str(controller.get("name"))
    namespace, labels = str(metadata.get("namespace") or ""), metadata.get("labels") or {}
    named: NamedOwner | None = None
    if kind == "ReplicaSet":
        suffix = f"-{labels.get('pod-template-hash')}"
        if name.endswith(suffix):
            named = (namespace, "deployments.apps", name.removesuffix(suffix))
    elif kind == "Job" and (jobs := labels.get(_JOB_SET)) and name.startswith(f"{jobs}-"):
        named = (namespace, "jobsets.jobset.x-k8s.io", str(jobs))
    elif kind == "Job" and (cron := _JOB_OF_CRON_JOB.fullmatch(name)):
        named = (namespace, "cronjobs.batch", cron[1])
    return PodOwner(str(controller.get("uid") or ""), named)


def _pending(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> PendingPod:
    since = str(metadata.get("creationTimestamp") or "")
    scheduled = find(status.get("conditions") or (), "PodScheduled") or {}
    if scheduled.get("status") == "False":
        message = str(scheduled.get("message") or "")[:MESSAGE_LIMIT]
        return PendingPod(since, _text(scheduled.get("reason")), sys.intern(message))
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field) or ():
            waiting = (container.get("state") or {}).get("waiting")
            if waiting:
                return PendingPod(since, _text(waiting.get("reason")))
    return PendingPod(since)


def _text(reason: object) -> str:
    return sys.intern(str(reason or "")[:MESSAGE_LIMIT])
