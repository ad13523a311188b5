"""How the GPUs of the clusters that a plan changes are divided, before and after it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet
from optimizer.domain.nodes import GPU_KIND
from optimizer.domain.solution import PolicyEnforcement
from optimizer.snapshot.capacity.node_inventories import Inventory, by_cluster, read_inventory
from optimizer.snapshot.drawn_gpus import (
    GpuCounts,
    LayoutTable,
    gpus_of_cluster,
    gpus_of_policies,
    occupied_devices,
)
from optimizer.snapshot.object_readers import name_of, read_policy
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.namespace_reader import amounts_of
from optimizer.snapshot.requested_gpus import StatedGpus, stated_gpus
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import GpuLayout, GpusOnCluster, WorkloadMove

MAX_CLUSTERS = 1_000
"""Clusters whose GPUs a plan lists: more than anybody looks at."""


class PlannedGpus(NamedTuple):
    """The clusters with GPUs that a plan changes, and the layouts that they name by position."""

    layouts: tuple[GpuLayout, ...]
    clusters: tuple[GpusOnCluster, ...]


NO_GPUS = PlannedGpus((), ())

Enforcements = frozenset[PolicyEnforcement]


def planned_gpus(
    observation: Observation,
    request: OptimizeRequest,
    fleet: Fleet,
    moves: Iterable[WorkloadMove],
    before: Enforcements,
    after: Enforcements,
) -> PlannedGpus:
    """Return the GPUs of the clusters whose policies or workloads a plan changes, by name.

    `before`, `after`: the policies in force now, and with the plan. Where these stay, the GPUs do.
    """
    table, reserved = LayoutTable(), defaultdict[str, dict[tuple[str, str], float]](dict)
    asked = {item.name: dict(amounts_of(item)).get(GPU_KIND, 0.0) for item in fleet.workloads}
    changed = {item.cluster for item in before ^ after}
    for move in moves:
        old, new = ({place.cluster for place in places} for places in (move.before, move.after))
        changed |= old ^ new
        for place in move.after:
            reserved[place.cluster][place.device, move.workload] = asked.get(move.workload, 0.0)
    reader = _Reader(observation, request)
    old_policies, new_policies = (
        members_by_key((item.cluster, item.policy) for item in sorted(enforced))
        for enforced in (before, after)
    )
    found = list[GpusOnCluster]()
    for cluster in sorted(fleet.clusters, key=lambda item: item.name):
        if cluster.name not in changed or len(found) == MAX_CLUSTERS:
            continue
        now = reader.now(cluster, old_policies.get(cluster.name, ()))
        policies = new_policies.get(cluster.name, ())
        stays = policies == old_policies.get(cluster.name, ())
        then = now if stays else reader.then(cluster, policies, now)
        for supply in cluster.used_by_others:
            if supply.kind == GPU_KIND:
                reserved[cluster.name][supply.device, ""] = supply.amount
        if now or then:
            found.append(
                GpusOnCluster(
                    cluster=cluster.name,
                    before=table.listed(now),
                    gpus=table.listed(then),
                    occupied=occupied_devices(reserved[cluster.name]),
                )
            )
    return PlannedGpus(table.layouts, tuple(found))


class _Reader:
    """Reads the GPUs of single clusters, from the objects that a plan is made of."""

    def __init__(self, observation: Observation, request: OptimizeRequest) -> None:
        self._observation = observation
        self._managed = {name_of(obj): obj for obj in observation.managed_clusters}
        self._policies = {name_of(obj): obj for obj in observation.policies}
        self._inventories = by_cluster(observation.inventories)
        self._requested = {item.name: item.gpus for item in request.clusters}

    def now(self, cluster: Cluster, enforced: Iterable[str]) -> GpuCounts:
        """Return the GPUs that a cluster has."""
        obj = self._inventories.get(cluster.name)
        read = read_inventory(obj, self._observation.observed_at) if obj else None
        seen = read if isinstance(read, Inventory) else None
        policies = self._candidates(cluster, enforced)
        return gpus_of_cluster(self._managed[cluster.name], seen, policies)

    def then(self, cluster: Cluster, policies: Iterable[str], now: GpuCounts) -> GpuCounts:
        """Return the GPUs as these policies divide them; those of other models stay."""
        stated = self._stated(cluster, now)
        requested = ((item.node or "", item.model) for item in self._requested[cluster.name])
        by_node = {node: set(models) for node, models in members_by_key(requested).items()}
        products = {node: models.pop() for node, models in by_node.items() if len(models) == 1}
        found = gpus_of_policies(stated, self._candidates(cluster, policies), products)
        models = {item.model for item in found}
        seen = {item: many for item, many in now.items() if item.known == "Inventory"}
        if stated.product or "" in models:
            return found
        return {**{item: many for item, many in seen.items() if item.model not in models}, **found}

    def _stated(self, cluster: Cluster, now: GpuCounts) -> StatedGpus:
        """Return of which model how many GPUs are; empty if they are of several."""
        known = [(item.model, many) for item, many in now.items() if item.known == "Inventory"]
        known = [(item.model, item.count) for item in self._requested[cluster.name]] or known
        models = {model for model, _ in known}
        if not models:
            return stated_gpus(self._managed[cluster.name])
        if len(models) > 1:
            return StatedGpus("", 0, {})
        return StatedGpus(models.pop(), sum(many for _, many in known), {})

    def _candidates(self, cluster: Cluster, enforced: Iterable[str]) -> Iterator[CandidatePolicy]:
        """Yield policies with all that they supply: candidates lack what others use of it."""
        known = {item.policy: item for item in (*cluster.enforced, *cluster.candidates)}
        for name in enforced:
            candidate, obj = known.get(name), self._policies.get(name)
            divides = candidate is not None and candidate.layouts
            read = read_policy(obj, cluster.name) if obj and not divides else candidate
            if isinstance(read, CandidatePolicy):
                yield read
