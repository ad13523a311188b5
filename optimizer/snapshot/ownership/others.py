"""Reads what others enforce and use on the clusters of a request, each with its owner.

Others are every other optimization, every other namespace, and people who wrote a PlacementBinding
or a Placement by hand. What a generated Placement names counts before OCM has decided it; a
Placement by hand counts where OCM has decided it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from dsf.api.names import PLACEMENT_LABEL
from dsf.api.optimization import Optimization, generating_optimization
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Selector, Workload
from optimizer.snapshot.current_decisions import CurrentDecisions, read_current_decisions
from optimizer.snapshot.object_readers import (
    labels_of,
    name_of,
    placement_of,
    read_policy,
    read_workload,
)
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.kept_objects import KeptObjects, kept_objects
from optimizer.wire.request import OptimizeRequest

UNNAMED = "another namespace"
"""The owner of what a caller may not list."""


class OthersPolicy(NamedTuple):
    """A policy that somebody else enforces on a cluster."""

    owner: str
    namespace: str
    policy: CandidatePolicy


class ResourceUse(NamedTuple):
    """What a workload of somebody else uses on a cluster: an amount of each kind."""

    owner: str
    workload: str
    amounts: tuple[tuple[str, float], ...]


@dataclass(slots=True)
class OthersOnCluster:
    """What others enforce and use on one cluster.

    `selected_use`: amounts by kind of all workloads that OCM has selected the cluster for, those of
    the request included; empty unless the hub has resource usage scores.
    """

    enforced: list[OthersPolicy] = field(default_factory=list)
    uses: list[ResourceUse] = field(default_factory=list)
    selected_use: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def others_on_clusters(
    observation: Observation,
    request: OptimizeRequest,
    select: Mapping[str, Selector],
    running: CurrentDecisions,
) -> Mapping[str, OthersOnCluster]:
    """Return what others enforce and use, by cluster; `running` is the request's own decision."""
    kept = kept_objects(observation, request, running)
    targets = frozenset(item.name for item in request.target_workloads)
    found = defaultdict[str, OthersOnCluster](OthersOnCluster)
    for reader in _readers(observation, request.owner, select, kept, targets):
        for cluster, policy in reader.enforced():
            if policy not in found[cluster].enforced:
                found[cluster].enforced.append(policy)
        for cluster, use in reader.uses():
            found[cluster].uses.append(use)
        for cluster, workload in reader.selected() if observation.usage_scores else ():
            for kind, amount in amounts_of(workload):
                found[cluster].selected_use[kind] += amount
    return {name: item for name, item in found.items() if name in request.cluster_names}


def policies_of_others(
    observation: Observation, owner: Optimization, select: Mapping[str, Selector]
) -> Mapping[str, list[OthersPolicy]]:
    """Return the policies that others than an optimization enforce, by cluster."""
    found = defaultdict[str, list[OthersPolicy]](list)
    for reader in _readers(observation, owner, select):
        for cluster, policy in reader.enforced():
            found[cluster].append(policy)
    return found


def amounts_of(workload: Workload) -> tuple[tuple[str, float], ...]:
    """Return what one replica of a workload requests, by kind."""
    return ((workload.kind, workload.amount), *workload.requests)


def _readers(
    observation: Observation,
    owner: Optimization,
    select: Mapping[str, Selector],
    kept: KeptObjects = frozenset(),
    targets: frozenset[str] = frozenset(),
) -> Iterator["_NamespaceReader"]:
    """Yield a reader of the owner's namespace, and one of each other namespace."""
    own = _NamespaceReader(owner.namespace, observation, select)
    yield replace(own, own=owner, kept=kept, targets=targets)
    for namespace, seen in sorted(observation.elsewhere.items()):
        yield _NamespaceReader(namespace, seen, select)


@dataclass(frozen=True)
class _NamespaceReader:
    """Reads one namespace, without what its optimization `own` generated, unless it is `kept`.

    `targets`: the workloads whose first Placement a plan of `own` writes.
    """

    namespace: str
    seen: Observation
    select: Mapping[str, Selector]
    own: Optimization | None = None
    kept: KeptObjects = frozenset()
    targets: frozenset[str] = frozenset()

    @cached_property
    def _policies(self) -> Mapping[str, Object]:
        return {name_of(obj): obj for obj in self.seen.policies}

    @cached_property
    def _placements(self) -> Mapping[str, Object]:
        return {name_of(obj): obj for obj in self.seen.placements}

    @cached_property
    def _named(self) -> Mapping[str, tuple[str, ...]]:
        return read_current_decisions(self.seen, self.select, None).placements

    @cached_property
    def _selected(self) -> Mapping[str, list[str]]:
        return _selected_clusters(self.seen.decisions)

    def enforced(self) -> Iterator[tuple[str, OthersPolicy]]:
        """Yield the policies that bindings enforce, with the clusters."""
        for binding in self.seen.bindings:
            name, optimization = name_of(binding), generating_optimization(labels_of(binding))
            if self._is_own(optimization) and (PLACEMENT_BINDING, name) not in self.kept:
                continue
            reference = binding.get("placementRef") or {}
            clusters = self._clusters(str(reference.get("name")))
            for policy in self._bound_policies(binding):
                for cluster in clusters:
                    read = read_policy(policy, cluster)
                    if isinstance(read, CandidatePolicy):
                        owner = self._owner(optimization, f"PlacementBinding {UntrustedName(name)}")
                        yield cluster, OthersPolicy(owner, self.namespace, read)

    def uses(self) -> Iterator[tuple[str, ResourceUse]]:
        """Yield what workloads use that are not the request's, with the clusters."""
        for obj in self.seen.workloads:
            owners = dict(self._owners(obj))
            workload = read_workload(obj) if owners else None
            if isinstance(workload, Workload):
                for placement, owner in owners.items():
                    for cluster in self._clusters(placement):
                        yield cluster, ResourceUse(owner, workload.name, amounts_of(workload))

    def selected(self) -> Iterator[tuple[str, Workload]]:
        """Yield every workload that OCM has selected a cluster for, with the cluster."""
        for obj in self.seen.workloads:
            clusters = [name for item in _references(obj) for name in self._selected.get(item, ())]
            workload = read_workload(obj) if clusters else None
            if isinstance(workload, Workload):
                yield from ((cluster, workload) for cluster in clusters)

    def _owners(self, workload: Object) -> Iterator[tuple[str, str]]:
        """Yield the Placements of a workload that are not the request's, with their owners."""
        target = placement_of(workload) if name_of(workload) in self.targets else ""
        for name in _references(workload):
            if name == target or name not in self._placements:
                continue
            optimization = generating_optimization(labels_of(self._placements[name]))
            if not self._is_own(optimization) or (PLACEMENT, name) in self.kept:
                yield name, self._owner(optimization, f"Placement {UntrustedName(name)}")

    def _is_own(self, optimization: str | None) -> bool:
        return self.own is not None and optimization == self.own.name

    def _owner(self, optimization: str | None, by_hand: str) -> str:
        if self._is_own(optimization):
            return f"{self.own}, which keeps it without `prune`"
        if self.own is None and not self.seen.named:
            return UNNAMED
        if optimization is not None:
            return str(Optimization(self.namespace, optimization))
        return f"{by_hand} of namespace {self.namespace}, made by hand,"

    def _clusters(self, placement: str) -> list[str]:
        """Return the clusters that a Placement names, if it is generated, or that OCM selected."""
        named, selected = self._named.get(placement, ()), self._selected.get(placement, ())
        return list(dict.fromkeys((*named, *selected)))

    def _bound_policies(self, binding: Object) -> Iterator[Object]:
        """Yield the enforced policies of a binding, those of bound policy sets included.

        OCM writes into a policy's status which bindings its sets are bound by.
        """
        subjects = binding.get("subjects") or ()
        names = [str(item.get("name")) for item in subjects if item.get("kind") == POLICY.kind]
        if any(item.get("kind") == "PolicySet" for item in subjects):
            names += [
                name
                for name, policy in self._policies.items()
                for item in (policy.get("status") or {}).get("placement") or ()
                if item.get("placementBinding") == name_of(binding) and item.get("policySet")
            ]
        for name in dict.fromkeys(names):
            spec = (self._policies.get(name) or {}).get("spec") or {}
            informs = str(spec.get("remediationAction", "")).lower() == "inform"
            if name in self._policies and not spec.get("disabled") and not informs:
                yield self._policies[name]


def _selected_clusters(decisions: tuple[Object, ...]) -> Mapping[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for decision in decisions:
        listed = (decision.get("status") or {}).get("decisions") or ()
        owner = labels_of(decision).get(PLACEMENT_LABEL, "")
        found[owner] += [str(item["clusterName"]) for item in listed if item.get("clusterName")]
    return found


def _references(workload: Object) -> list[str]:
    """Return the names of the Placements that a ManifestWorkReplicaSet refers to."""
    references = (workload.get("spec") or {}).get("placementRefs") or ()
    return [str(item.get("name") or "") for item in references]
