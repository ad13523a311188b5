"""A fleet in which NodeInventories count: clusters with nodes, workloads with Pods."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import InvalidInput, UntrustedName, listed
from dsf.kube.port import Object
from optimizer.domain.fleet import Cluster, Supply, Workload
from optimizer.domain.issue import Issue
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.nodes import GPU_KIND, WHOLE_GPU, kind_and_device
from optimizer.snapshot.capacity.cluster_nodes import ClusterNodes
from optimizer.snapshot.capacity.device_claims import claim_issues
from optimizer.snapshot.capacity.labelled_gpus import CHANGING, STATE
from optimizer.snapshot.capacity.node_inventories import Inventory
from optimizer.snapshot.capacity.pod_templates import pods_of
from optimizer.snapshot.capacity.seen_capacity import (
    STARTING,
    Inventories,
    SeenCluster,
    settling,
    without_seen_uses,
)
from optimizer.snapshot.object_readers import claims_of, name_of, stated_allocatable
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.namespace_reader import ResourceUse
from optimizer.snapshot.ownership.others import OthersOnCluster
from optimizer.wire.request import OptimizeRequest

Decided = Mapping[str, Mapping[str, str]]
"""By cluster, the ManifestWorks that a plan decides about, each with its workload."""


@dataclass(frozen=True, slots=True)
class SeenFleet:
    """The fleet, what others use that inventories don't count, and issues.

    `settled`: from when on inventories that say the same make the same fleet; None: it has none.
    """

    clusters: tuple[Cluster, ...]
    workloads: tuple[Workload, ...]
    others: Mapping[str, OthersOnCluster]
    issues: tuple[Issue, ...] = ()
    settled: datetime | None = None


def nodes_of(
    inventories: Inventories, workloads: Iterable[Workload], decided: Callable[[], Decided]
) -> Mapping[str, ClusterNodes]:
    """Return the nodes of each cluster with an inventory, as a request with workloads sees them."""
    targets = {item.name for item in workloads}
    works = decided() if inventories.of else {}
    return {
        name: ClusterNodes(inventory.nodes, works.get(name, {}), targets)
        for name, inventory in inventories.of.items()
    }


def seen_fleet(
    clusters: Sequence[Cluster],
    workloads: tuple[Workload, ...],
    pools: GpuPools,
    others: Mapping[str, OthersOnCluster],
    inventories: Inventories,
    nodes: Mapping[str, ClusterNodes],
    *,
    observation: Observation,
    request: OptimizeRequest,
    claim_name: str,
    bound: Mapping[str, datetime],
) -> SeenFleet:
    """Return a fleet with its nodes and Pods; without any inventory it is as before.

    `bound`: when the last policy in force was bound to each cluster.
    """
    if not inventories.of and not inventories.not_relied:
        return SeenFleet(tuple(clusters), workloads, others)
    by_name = {name_of(obj): obj for obj in observation.workloads}
    divided = _may_divide(clusters, pools, others, nodes, inventories.not_relied)
    workloads, of_pods = _with_pods(workloads, by_name, divided=divided)
    asked = {kind for item in workloads for kind in (item.kind, *dict(item.requests))}
    managed = {name_of(obj): obj for obj in observation.managed_clusters}
    requested = {item.name: item for item in request.clusters}
    found, issues = list[Cluster](), [*inventories.issues, *of_pods]
    for cluster in clusters:
        name, there, seen = cluster.name, others.get(cluster.name, _NOBODY), cluster
        if name in nodes:
            obj, inventory = managed[name], inventories.of[name]
            policies = [*cluster.candidates, *cluster.enforced]
            policies += [item.policy for item in there.enforced]
            seen, contradicted = SeenCluster(
                replace(cluster, device_classes=inventory.device_classes),
                nodes[name],
                stated_allocatable(obj, requested[name]),
                controlled=name in pools
                or any(supply.kind == GPU_KIND for item in policies for supply in item.supplies),
                settled=_is_settled(obj, inventory, claim_name, bound.get(name)),
                asked=asked,
            ).read()
            issues += (*contradicted, *claim_issues(seen, workloads))
        if name in inventories.not_relied:
            stated = replace(seen, candidates=cluster.candidates, enforced=cluster.enforced)
            seen = _with_what_runs(stated, workloads, there.uses)
        found.append(seen)
    lost = [item.name for item in clusters if item.name in inventories.not_relied]
    return SeenFleet(
        tuple(found),
        tuple(_staying(item, lost) for item in workloads) if lost else workloads,
        without_seen_uses(others, inventories, observation),
        tuple(issues),
        settling(observation, bound.values()),
    )


_NOBODY = OthersOnCluster()


def _may_divide(
    clusters: Iterable[Cluster],
    pools: GpuPools,
    others: Mapping[str, OthersOnCluster],
    nodes: Mapping[str, ClusterNodes],
    lost: Container[str],
) -> bool:
    """Tell whether a MIG device of any cluster may be advertised as a GPU.

    It may not where nodes are seen that name their devices, and no policy divides their GPUs.
    """
    for cluster in (item for item in clusters if item.name not in lost):
        name, there = cluster.name, others.get(cluster.name, _NOBODY)
        policies = (*cluster.candidates, *cluster.enforced, *(one.policy for one in there.enforced))
        dividing = (supply.kind == GPU_KIND for item in policies for supply in item.supplies)
        if name in pools or name not in nodes or any(dividing):
            return True
        if any(item.profile or item.devices.devices for item in nodes[name].seen):
            return True
    return False


def _staying(workload: Workload, lost: Iterable[str]) -> Workload:
    unseen = tuple(name for name in lost if name not in workload.current)
    return replace(workload, unseen=unseen)


def _with_what_runs(
    cluster: Cluster, workloads: Iterable[Workload], uses: Iterable[ResourceUse]
) -> Cluster:
    """Return a cluster whose inventory is not relied on, with enough of all that runs there.

    Nothing else starts there, so it does no harm that it seems to have more than it has.
    """
    in_force = (*cluster.enforced, *(item for item in cluster.candidates if item.current))
    of_policies = {supply.kind for item in in_force for supply in item.supplies}
    used = defaultdict[str, float](float)
    for kind, amount in (each for use in uses for each in use.amounts):
        used[kind] += amount
    needed = defaultdict[tuple[str, str], float](float)
    for item in workloads:
        devices = item.devices or (WHOLE_GPU if item.kind == GPU_KIND else "",)
        asked = [(item.kind, device, item.amount) for device in devices]
        asked += [(kind, "", amount) for kind, amount in item.requests]
        for kind, of, amount in asked if cluster.name in item.current else ():
            if kind not in of_policies:
                needed[kind, of] += amount
    more = (Supply(kind, of, amount + used[kind]) for (kind, of), amount in needed.items())
    return replace(cluster, base=(*cluster.base, *more))


def _is_settled(
    managed: Object, inventory: Inventory, claim_name: str, bound: datetime | None
) -> bool:
    """Return whether nodes advertise what the policies in force say, or never will.

    An inventory may be older than a policy, and a claim may still speak of the one before.
    """
    if bound is not None and inventory.observed < bound + STARTING:
        return False
    compliant = claims_of(managed).get(claim_name) == "compliant"
    return compliant and all(item.labels.get(STATE) not in CHANGING for item in inventory.nodes)


def _with_pods(
    workloads: Iterable[Workload], replica_sets: Mapping[str, Object], *, divided: bool
) -> tuple[tuple[Workload, ...], tuple[Issue, ...]]:
    """Return workloads with their Pods, and what labels and Pods contradict each other in.

    Labels are the contract, and Pods are what starts: the larger amount counts. A workload whose
    Pods can't be read, or name several devices, is left out. `divided`: a MIG device may be
    requested as a GPU (MIG strategy `single`), so that who requests GPUs may run on any device.
    """
    found, issues = list[Workload](), list[Issue]()
    not_named = {WHOLE_GPU} if divided else set[str]()
    for workload in workloads:
        pods = pods_of(replica_sets[workload.name])
        if isinstance(pods, InvalidInput):
            issues.append(_issue("InvalidPodTemplate", workload, pods.message))
            continue
        amounts, devices = defaultdict[str, float](float), set[str]()
        for group in pods:
            for resource, amount in group.requests.items():
                kind, device = kind_and_device(resource)
                amounts[kind] += group.count * amount
                if kind != resource:
                    amounts[resource] += group.count * amount
                    devices.add(device)
        if len(devices) > 1:
            why = (
                f"its Pods request several GPU devices, {listed(sorted(devices))}, and a workload"
                " is planned for one: make a workload of each"
            )
            issues.append(_issue("SeveralDevices", workload, why))
            continue
        larger = {
            kind: amounts[kind]
            for kind, amount in ((workload.kind, workload.amount), *workload.requests)
            if amounts[kind] > amount
        }
        named = tuple(devices - not_named) if workload.kind == GPU_KIND else ()
        issues += _contradictions(workload, amounts, named)
        found.append(
            replace(
                workload,
                amount=larger.get(workload.kind, workload.amount),
                requests=tuple((kind, larger.get(kind, n)) for kind, n in workload.requests),
                pods=pods,
                devices=named or workload.devices,
            )
        )
    return tuple(found), tuple(issues)


def _contradictions(
    workload: Workload, amounts: Mapping[str, float], devices: Sequence[str]
) -> Iterable[Issue]:
    """Yield what is stated and differs from what the Pods request of the same kind, if they do."""
    if workload.devices and not set(devices) <= set(workload.devices):
        why = (
            f"devices {listed(workload.devices)} are stated, and its Pods request"
            f" {listed(devices)}, which counts"
        )
        yield _issue("RequestContradicted", workload, why)
    for kind, stated in ((workload.kind, workload.amount), *workload.requests):
        if amounts.get(kind) and amounts[kind] != stated:
            asked = format_quantity(amounts[kind])
            why = (
                f"{format_quantity(float(stated))} {UntrustedName(kind)} are stated, and its Pods"
                f" request {asked} on each cluster; the larger counts"
            )
            yield _issue("RequestContradicted", workload, why)


def _issue(reason: str, workload: Workload, why: str) -> Issue:
    return Issue(reason, f"workload {workload.name}: {why}", workload=workload.name)
