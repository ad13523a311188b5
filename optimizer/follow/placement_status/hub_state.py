"""The objects of an observation, indexed for the questions that a placement's status asks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.names import CLUSTER_CLAIM, PLACEMENT_LABEL, ROOT_POLICY_LABEL, SCHEDULING_DISABLED
from dsf.api.optimization import generating_optimization
from dsf.api.scoring.placement_scores import status_written
from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName, UntrustedText
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, Requirement, label_selector_of
from dsf.placement import (
    Obstacle,
    Toleration,
    bound_sets,
    read_taints,
    read_tolerations,
    sets_obstacle,
    sets_of,
    state_obstacle,
    taint_obstacle,
    untolerated,
)
from optimizer.snapshot.object_readers import (
    claims_of,
    generated_by,
    labels_of,
    name_of,
    replica_set_of,
)
from optimizer.snapshot.observation import CEL_CLUSTER_NAME, Observation
from optimizer.snapshot.workload_pods import InventoriedWorks, inventoried_works


def cluster_fault(name: str, cluster: Object | None) -> Obstacle | None:
    """Return what is wrong with the cluster of this name; None if nothing is."""
    if cluster is None:
        message = f"the hub has no cluster {UntrustedName(name)}: plan again"
        return Obstacle("ClusterLeft", message)
    available = find(conditions_of(cluster), "ManagedClusterConditionAvailable")
    lost = available is not None and available.get("status") != "True"
    if available is not None and lost and not cluster["metadata"].get("deletionTimestamp"):
        message = f"cluster {UntrustedName(name)} is not available: {said(available)}"
        return Obstacle("ClusterLost", message, since(available))
    return state_obstacle(cluster)


def said(condition: Mapping[str, Any]) -> str:
    """Return a condition's reason, and its message quoted."""
    message = UntrustedText(condition.get("message") or "")
    reason = UntrustedName(condition.get("reason") or "no reason")
    return f"{reason}, {message}" if message else f"{reason}"


def since(condition: Mapping[str, Any] | None) -> datetime | None:
    """Return the lastTransitionTime of a condition; None if there is none."""
    return read_time((condition or {}).get("lastTransitionTime"))


@dataclass(frozen=True, slots=True)
class ObservedPlacement:
    """A Placement: the clusters that it names, with the claims that it requires of each.

    A named cluster need not exist. `number` is numberOfClusters. `selected`: the clusters of its
    PlacementDecisions. `satisfied`: its condition PlacementSatisfied, None before OCM has decided.
    `decided`: when they were written last, if the hub says so. `unscheduled`: an annotation tells
    OCM not to decide it.
    """

    name: str
    claims: Mapping[str, tuple[Requirement, ...]]
    number: int | None
    selected: frozenset[str]
    satisfied: Mapping[str, Any] | None
    tolerations: tuple[Toleration, ...] = ()
    decided: datetime | None = None
    unscheduled: bool = False

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters that it names, in the order of their names."""
        return tuple(sorted(self.claims))


def read_placements(
    placements: Iterable[Object], decisions: Iterable[Object], clusters: Iterable[Object]
) -> dict[str, ObservedPlacement]:
    """Return generated Placements by name."""
    selected, decided = defaultdict[str, set[str]](set), dict[str, datetime]()
    for decision in decisions:
        owner = labels_of(decision).get(PLACEMENT_LABEL, "")
        listed = (decision.get("status") or {}).get("decisions") or ()
        selected[owner].update(str(item["clusterName"]) for item in listed)
        if written := status_written(decision):
            decided[owner] = max(written, decided.get(owner, written))
    labels = _ClusterLabels(clusters)
    return {
        name: ObservedPlacement(
            name,
            _claims(obj.get("spec") or {}, labels),
            (obj.get("spec") or {}).get("numberOfClusters"),
            frozenset(selected.get(name, ())),
            find(conditions_of(obj), "PlacementSatisfied"),
            read_tolerations(obj.get("spec") or {}),
            decided.get(name),
            (obj["metadata"].get("annotations") or {}).get(SCHEDULING_DISABLED) == "true",
        )
        for obj in placements
        for name in [name_of(obj)]
    }


class _ClusterLabels:
    """The labels of all managed clusters, indexed by key and value."""

    def __init__(self, clusters: Iterable[Object]) -> None:
        self._labels = {name_of(item): labels_of(item) for item in clusters}
        self._having = defaultdict[tuple[str, str], list[str]](list)
        for name, labels in self._labels.items():
            for pair in labels.items():
                self._having[pair].append(name)

    def named(self, selector: Mapping[str, Any]) -> Iterator[str]:
        """Yield the clusters that a requiredClusterSelector names, whatever their claims are.

        A value that neither a label nor a name of a cluster is is yielded too: that cluster left.
        """
        parsed = label_selector_of(selector.get("labelSelector") or {})
        expressions = (selector.get("celSelector") or {}).get("celExpressions") or ()
        if not isinstance(parsed, LabelSelector):
            return
        if expressions:
            for name in CEL_CLUSTER_NAME.findall(" ".join(map(str, expressions))):
                if name not in self._labels or parsed.matches(self._labels[name]):
                    yield name
        elif [item.operator for item in parsed.requirements] == ["In"]:
            (one,) = parsed.requirements
            for value in sorted(one.values):
                yield from self._having.get((one.key, value), ())
                if (one.key, value) not in self._having and value not in self._labels:
                    yield value
        else:
            yield from (name for name, own in self._labels.items() if parsed.matches(own))


def _claims(spec: Mapping[str, Any], labels: _ClusterLabels) -> dict[str, tuple[Requirement, ...]]:
    """Return the claims that the predicates require of each cluster; the weakest predicate wins."""
    found: dict[str, tuple[Requirement, ...]] = {}
    for predicate in spec.get("predicates") or ():
        selector = predicate.get("requiredClusterSelector") or {}
        required = label_selector_of(selector.get("claimSelector") or {})
        claims = required.requirements if isinstance(required, LabelSelector) else ()
        for name in labels.named(selector):
            found[name] = min(found.get(name, claims), claims, key=len)
    return found


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
    None if they may not be listed. `inventoried`: the Pods of ManifestWorks by cluster.
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
    inventoried: Mapping[str, InventoriedWorks]

    def enforced_on(self) -> Mapping[str, list[Enforcement]]:
        """Return the enforcements of each cluster that a policy's Placement names."""
        found = defaultdict[str, list[Enforcement]](list)
        for item in self.enforcements:
            placement = self.placements.get(item.placement)
            for cluster in placement.clusters if placement else ():
                found[cluster].append(item)
        return found

    def fault(self, name: str, tolerations: Iterable[Toleration] = ()) -> Obstacle | None:
        """Return why OCM can't select a cluster for a Placement with these; None if it can."""
        cluster = self.clusters.get(name)
        found = cluster_fault(name, cluster) or self.unbound.get(name)
        if found or cluster is None:
            return found
        taints = read_taints(cluster)
        taint = untolerated(taints, tolerations, selected=False, now=self.observed_at)
        return taint_obstacle(name, taint) if taint else None

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
        return claims_of(self.clusters.get(cluster, {})).get(name, "")


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
        inventoried=inventoried_works(observation.inventories, observation.observed_at),
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
