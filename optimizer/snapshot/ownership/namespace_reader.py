"""Reads one namespace: what others enforce there, what their workloads use, and depend on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from dsf.api.optimization import Optimization, generating_optimization
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Selector, Workload
from optimizer.snapshot import observation
from optimizer.snapshot.object_readers import (
    labels_of,
    name_of,
    not_enforced,
    placement_of,
    read_policy,
    read_workload,
)

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
    namespace: str = ""


class Dependent(NamedTuple):
    """A workload of somebody else that stops, or loses its devices, if a cluster's policies change.

    `named`: whether a plan may name it. `left_over`: it runs although its Placement is gone.
    """

    owner: str
    namespace: str
    workload: str
    named: bool
    left_over: bool

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of its ManifestWorkReplicaSet."""
        return self.namespace, self.workload


def amounts_of(workload: Workload) -> tuple[tuple[str, float], ...]:
    """Return what one replica of a workload requests, by kind."""
    return ((workload.kind, workload.amount), *workload.requests)


@dataclass(frozen=True)
class NamespaceReader:
    """Reads one namespace, without what its optimization `own` generated, unless it is `kept`.

    `works`: what runs, by workload. `targets`: the workloads whose first Placement a plan of `own`
    writes.
    """

    namespace: str
    seen: observation.Observation
    select: Mapping[str, Selector]
    works: Mapping[str, Sequence[observation.RunningWork]]
    own: Optimization | None = None
    kept: observation.KeptObjects = frozenset()
    targets: frozenset[str] = frozenset()

    @cached_property
    def _policies(self) -> Mapping[str, Object]:
        return {name_of(obj): obj for obj in self.seen.policies}

    @cached_property
    def _placements(self) -> Mapping[str, Object]:
        return {name_of(obj): obj for obj in self.seen.placements}

    @cached_property
    def _named(self) -> Mapping[str, tuple[str, ...]]:
        return observation.read_current_decisions(self.seen, self.select, None).placements

    @cached_property
    def _selected(self) -> Mapping[str, list[str]]:
        return observation.selected_clusters(self.seen.decisions)

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
        """Yield what workloads use that are not the request's, once on each cluster."""
        for obj in self._workloads():
            places = dict[str, str]()
            for cluster, owner in (*self._placed(obj), *self._running(obj)):
                places.setdefault(cluster, owner)
            workload = read_workload(obj) if places else None
            if isinstance(workload, Workload):
                for cluster, owner in places.items():
                    yield (
                        cluster,
                        ResourceUse(owner, workload.name, amounts_of(workload), self.namespace),
                    )

    def decided(self) -> Iterator[tuple[str, str, str]]:
        """Yield the works that the request decides about: cluster, name of the work, workload."""
        for obj in self._workloads():
            first = placement_of(obj)
            for work in self.works.get(name_of(obj), ()):
                if not self._owner_of(work.placement or first, obj):
                    yield work.cluster, work.name, name_of(obj)

    def selected(self) -> Iterator[tuple[str, Workload]]:
        """Yield every workload that OCM has selected a cluster for or runs there, with it."""
        for obj in self._workloads():
            found = [name for item in _references(obj) for name in self._selected.get(item, ())]
            clusters = {*found, *(work.cluster for work in self.works.get(name_of(obj), ()))}
            workload = read_workload(obj) if clusters else None
            if isinstance(workload, Workload):
                yield from ((cluster, workload) for cluster in sorted(clusters))

    def depending(self, claim_name: str) -> Iterator[tuple[str, Dependent]]:
        """Yield the clusters of workloads that are not the request's and depend on policies."""
        asking = self._with_claim(claim_name)
        seen, names = replace(self.seen, placements=asking), set(map(name_of, asking))
        named = observation.read_current_decisions(seen, self.select, None).placements
        for obj in self._workloads():
            whose = (self.namespace, name_of(obj), not self._hidden)
            for placement, owner in self._owners(obj):
                if placement in names:
                    for cluster in named.get(placement, self._selected.get(placement, ())):
                        yield cluster, Dependent(owner, *whose, left_over=False)
            left_over = list(self._running(obj, left_over=True))
            if left_over and isinstance(read_workload(obj), Workload):
                for cluster, owner in left_over:
                    yield cluster, Dependent(owner, *whose, left_over=True)

    def _with_claim(self, name: str) -> tuple[Object, ...]:
        """Return the Placements that require a claim, without the predicates that do not."""
        found = list[Object]()
        for obj in self.seen.placements:
            spec = obj.get("spec") or {}
            asking = [item for item in spec.get("predicates") or () if _asks(item, name)]
            if asking:
                found.append({**obj, "spec": {**spec, "predicates": asking}})
        return tuple(found)

    def _workloads(self) -> Iterator[Object]:
        """Yield the workloads; one whose ManifestWorkReplicaSet is gone or unread, by its works."""
        yield from self.seen.workloads
        known = set(map(name_of, self.seen.workloads))
        for name, works in self.works.items():
            if name not in known:
                yield works[0].as_replica_set(name)

    def _placed(self, workload: Object) -> Iterator[tuple[str, str]]:
        """Yield where Placements that are not the request's select a workload, with the owners."""
        for placement, owner in self._owners(workload):
            yield from ((cluster, owner) for cluster in self._clusters(placement))

    def _owners(self, workload: Object) -> Iterator[tuple[str, str]]:
        """Yield the Placements of a workload that are not the request's, with their owners."""
        for name in _references(workload):
            if name in self._placements and (owner := self._owner_of(name, workload)):
                yield name, owner

    def _running(self, workload: Object, *, left_over: bool = False) -> Iterator[tuple[str, str]]:
        """Yield where a workload runs that the request does not decide on, with the owners.

        `left_over`: only what runs although its Placement is gone.
        """
        first = placement_of(workload)
        for work in self.works.get(name_of(workload), ()):
            placement = work.placement or first
            if left_over and placement in self._placements:
                continue
            if owner := self._owner_of(placement, workload):
                yield work.cluster, owner

    def _owner_of(self, placement: str, workload: Object) -> str:
        """Return whose a Placement of a workload is; empty if a plan of the request writes it."""
        if name_of(workload) in self.targets and placement == placement_of(workload):
            return ""
        if placement not in self._placements:
            gone = f"Placement {UntrustedName(placement)} of namespace {self.namespace}, now gone,"
            return UNNAMED if self._hidden else gone
        optimization = generating_optimization(labels_of(self._placements[placement]))
        if self._is_own(optimization) and (PLACEMENT, placement) not in self.kept:
            return ""
        return self._owner(optimization, f"Placement {UntrustedName(placement)}")

    @property
    def _hidden(self) -> bool:
        return self.own is None and not self.seen.named

    def _is_own(self, optimization: str | None) -> bool:
        return self.own is not None and optimization == self.own.name

    def _owner(self, optimization: str | None, by_hand: str) -> str:
        if self.own and self._is_own(optimization):
            return self.own.without_prune
        if self._hidden:
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
            policy = self._policies.get(name)
            if policy is not None and not not_enforced(policy):
                yield policy


def _references(workload: Object) -> list[str]:
    """Return the names of the Placements that a ManifestWorkReplicaSet refers to."""
    references = (workload.get("spec") or {}).get("placementRefs") or ()
    return [str(item.get("name") or "") for item in references]


def _asks(predicate: Mapping[str, Any], claim_name: str) -> bool:
    """Return whether a predicate of a Placement requires a claim."""
    selector = (predicate.get("requiredClusterSelector") or {}).get("claimSelector") or {}
    return any(item.get("key") == claim_name for item in selector.get("matchExpressions") or ())
