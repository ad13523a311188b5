"""The objects of an observation, indexed for the questions that a placement's status asks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from dsf.api.names import CLUSTER_CLAIM, ROOT_POLICY_LABEL
from dsf.api.optimization import generating_optimization
from dsf.api.scoring.placement_scores import status_written
from dsf.api.times import read_time
from dsf.kube.port import Object
from dsf.placement import Obstacle, bound_sets, sets_obstacle, sets_of
from optimizer.placement_status.cluster_faults import cluster_fault, taint_fault
from optimizer.placement_status.observed_placements import (
    ObservedPlacement,
    read_placements,
)
from optimizer.snapshot.object_readers import generated_by, labels_of, name_of, replica_set_of
from optimizer.snapshot.observation import Observation

REPORT_GRACE = timedelta(seconds=60)
"""How long a compliance from before a binding, or before a change of the policy, says nothing.

OCM reports within seconds, and does not report again if the compliance stays as it is.
"""


class Enforcement(NamedTuple):
    """A policy that a PlacementBinding binds to the clusters of a Placement.

    `optimization`: the one that generated the binding; None if none did. `since`: when the binding
    was created, if the hub says so.
    """

    binding: str
    policy: str
    placement: str
    optimization: str | None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class HubState:
    """The objects by name, the enforcements, and compliances by policy and cluster.

    `bound`: the policies that any PlacementBinding names. `unbound`: the clusters none of whose
    cluster sets is bound to the namespace. `existing_placements`: also those that were not
    generated. `works`: the ManifestWorks by replica set and cluster;
    None if they may not be listed.
    """

    clusters: Mapping[str, Object]
    policies: Mapping[str, Object]
    placements: Mapping[str, ObservedPlacement]
    existing_placements: frozenset[str]
    enforcements: tuple[Enforcement, ...]
    bound: frozenset[str]
    compliances: Mapping[tuple[str, str], str]
    unbound: Mapping[str, Obstacle]
    works: Mapping[tuple[str, str], Object] | None
    observed_at: datetime

    def enforced_on(self) -> Mapping[str, list[Enforcement]]:
        """Return the enforcements of each cluster that a policy's Placement names."""
        found = defaultdict[str, list[Enforcement]](list)
        for item in self.enforcements:
            placement = self.placements.get(item.placement)
            for cluster in placement.clusters if placement else ():
                found[cluster].append(item)
        return found

    def fault(self, name: str, placement: ObservedPlacement) -> Obstacle | None:
        """Return why OCM can't select a cluster for a Placement now; None if it can."""
        cluster = self.clusters.get(name)
        found = cluster_fault(name, cluster) or self.unbound.get(name)
        if found or cluster is None:
            return found
        return taint_fault(name, cluster, placement.tolerations, now=self.observed_at)

    def compliance_is_current(self, item: Enforcement) -> bool:
        """Return whether OCM has reported on a policy since it was bound and changed last.

        A report has no time of its own: the time is that of the whole status.
        """
        written, asked = status_written(self.policies[item.policy]), self.report_due_since(item)
        if asked is None or written is None or written >= asked:
            return True
        return self.observed_at - asked > REPORT_GRACE

    def report_due_since(self, item: Enforcement) -> datetime | None:
        """Return when a policy was bound or its spec was written, whatever came last."""
        times = (item.since, _spec_written(self.policies[item.policy]))
        return max(filter(None, times), default=None)

    def claim(self, cluster: str, name: str = CLUSTER_CLAIM) -> str:
        """Return the value of a cluster's claim as the hub has it; empty if it has none."""
        status = self.clusters.get(cluster, {}).get("status") or {}
        values = {item["name"]: item.get("value", "") for item in status.get("clusterClaims") or ()}
        return str(values.get(name, ""))


def read_hub_state(
    observation: Observation, namespace: str, optimization: str | None = None
) -> HubState:
    """Return the state of a namespace, and of the managed clusters of the whole hub."""
    policies = {
        name_of(obj): obj for obj in observation.policies if ROOT_POLICY_LABEL not in labels_of(obj)
    }
    return HubState(
        clusters={name_of(obj): obj for obj in observation.managed_clusters},
        policies=policies,
        placements=read_placements(
            generated_by(observation.placements, optimization),
            observation.decisions,
            observation.managed_clusters,
        ),
        existing_placements=frozenset(map(name_of, observation.placements)),
        enforcements=tuple(_enforcements(generated_by(observation.bindings, optimization))),
        bound=frozenset(item.policy for item in _enforcements(observation.bindings)),
        compliances={
            (name, str(item.get("clustername"))): str(item.get("compliant") or "Pending")
            for name, obj in policies.items()
            for item in (obj.get("status") or {}).get("status") or ()
        },
        unbound=dict(_unbound(observation, namespace)),
        works=_works(observation, namespace),
        observed_at=observation.observed_at,
    )


def _spec_written(policy: Object) -> datetime | None:
    """Return when a field manager that has a part of the spec wrote last; None if not known.

    Who labels or annotates a policy has no part of its spec.
    """
    times = (
        read_time(str(entry.get("time") or ""))
        for entry in policy["metadata"].get("managedFields") or ()
        if not entry.get("subresource") and "f:spec" in (entry.get("fieldsV1") or {})
    )
    return max(filter(None, times), default=None)


def _works(observation: Observation, namespace: str) -> Mapping[tuple[str, str], Object] | None:
    if observation.works is None:
        return None
    owners = ((replica_set_of(work), work) for work in observation.works)
    return {
        (name, str(work["metadata"]["namespace"])): work
        for (owning, name), work in owners
        if owning == namespace
    }


def _unbound(observation: Observation, namespace: str) -> Iterator[tuple[str, Obstacle]]:
    """Yield the clusters that no Placement of the namespace can select; none without any set."""
    bound = bound_sets(observation.set_bindings, observation.cluster_sets)
    for cluster in observation.managed_clusters if observation.cluster_sets else ():
        member = sets_of(cluster, observation.cluster_sets)
        found = sets_obstacle(name_of(cluster), member, bound, namespace)
        if found:
            yield name_of(cluster), found


def _enforcements(bindings: Iterable[Object]) -> Iterable[Enforcement]:
    return (
        Enforcement(
            name_of(obj),
            str(subject.get("name")),
            str(reference.get("name")),
            generating_optimization(labels_of(obj)),
            read_time(str(obj["metadata"].get("creationTimestamp") or "")),
        )
        for obj in bindings
        for reference in [obj.get("placementRef") or {}]
        for subject in obj.get("subjects") or ()
    )
