"""Bring a layout onto a cluster, and see which Pods kube-scheduler runs."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING

from tests.eventually import until

from ..harness.api import condition_of
from .layouts import NAMESPACE, PodSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..harness.api import Object
    from ..harness.scheduled import ScheduledCluster
    from .layouts import Layout

NO_NODE = re.compile(r"0/\d+ nodes are available")
"""The scheduler has tried all nodes; before, a Pod may wait for its ResourceClaim to be created."""


def lay_out(cluster: ScheduledCluster, layout: Layout) -> None:
    """Create the nodes, wait until the scheduler knows them, and let the others' Pods run."""
    for node in layout.nodes:
        cluster.add(node.objects())
    wait_nodes(cluster, layout)
    wait_known(cluster, layout)
    others = [f"{other.name}-0" for other in layout.others]
    for other in layout.others:
        cluster.add(other.objects())
    wait_running(cluster, others)
    for other in layout.others:
        if other.finished:
            cluster.end(f"{other.name}-0", NAMESPACE)


def wait_known(cluster: ScheduledCluster, layout: Layout) -> None:
    """Wait until the scheduler has put a Pod on each node that it may use.

    Without this, it could refuse a Pod because it has not heard of a node yet.
    """
    probes = {f"probe-{node.name}": node for node in layout.nodes if node.usable}
    for name, node in probes.items():
        probe = PodSet(name, 1, {}, tolerates=True).objects()[0]
        probe["metadata"]["name"] = name
        probe["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node.name}
        cluster.add([probe])
    wait_running(cluster, probes)
    remove(cluster, probes)


def remove(cluster: ScheduledCluster, names: Collection[str]) -> None:
    """Delete Pods, and wait until they are gone, with their claims."""
    for name in names:
        cluster.api.delete("v1", "Pod", name, NAMESPACE)
    until("no such Pod", lambda: not listed(cluster, names), every=0.05)


def wait_running(cluster: ScheduledCluster, names: Collection[str]) -> None:
    """Wait until all Pods of these names run."""

    def probe() -> bool:
        return sum(map(is_running, listed(cluster, names))) == len(names)

    until(f"{', '.join(names)} to run", probe, every=0.05, check=cluster.processes.check)


def wait_nodes(cluster: ScheduledCluster, layout: Layout) -> None:
    """Wait until each node has the taints that it keeps, and no other.

    A node that is not ready has no lease. Once the grace period has passed since Kubernetes first
    saw a node of its name, also a deleted one, it counts as unreachable instead.
    """
    expected = {node.name: node.kept_taints for node in layout.nodes}

    def probe() -> bool:
        return expected == {
            node["metadata"]["name"]: {
                taint["key"].replace("/unreachable", "/not-ready")
                for taint in node["spec"].get("taints", [])
                if taint["effect"] == "NoSchedule"
            }
            for node in cluster.api.list("v1", "Node")
        }

    what = f"the nodes of layout {layout.seed} to be tainted"
    until(what, probe, every=0.05, check=cluster.processes.check)


def start(cluster: ScheduledCluster, layout: Layout, workloads: Iterable[PodSet]) -> list[str]:
    """Create the Pods of workloads in a random order, and return their names."""
    pods = [item for workload in workloads for item in workload.objects()]
    random.Random(layout.seed).shuffle(pods)  # noqa: S311 - no secret
    cluster.add(pods)
    return [item["metadata"]["name"] for item in pods]


def refused(cluster: ScheduledCluster, names: Collection[str], seconds: float = 0) -> list[str]:
    """Wait until each Pod runs or was refused; return the scheduler's reasons for those that wait.

    Where all of them should run, the refused ones get so many seconds to be tried again.
    """
    deadline = time.monotonic() + seconds

    def probe() -> list[str] | None:
        reasons = []
        for item in listed(cluster, names):
            condition = condition_of(item, "PodScheduled")
            if is_running(item):
                continue
            if condition.get("status") != "False" or not NO_NODE.match(condition["message"]):
                return None
            reasons.append(f"{item['metadata']['name']}: {condition['message']}")
        return [""] if not reasons else reasons if time.monotonic() >= deadline else None

    found = until("a decision on each Pod", probe, every=0.05, check=cluster.processes.check)
    return [reason for reason in found if reason]


def listed(cluster: ScheduledCluster, names: Iterable[str]) -> list[Object]:
    """The Pods of these names."""
    wanted = set(names)
    found = cluster.api.list("v1", "Pod", NAMESPACE)
    return [item for item in found if item["metadata"]["name"] in wanted]


def is_running(item: Object) -> bool:
    """Whether a Pod runs and is ready."""
    return (
        item["status"].get("phase") == "Running"
        and condition_of(item, "Ready").get("status") == "True"
    )
