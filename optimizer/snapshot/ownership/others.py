"""Reads what others enforce and use on the clusters of a request, each with its owner.

Others are every other optimization, every other namespace, and people who wrote a PlacementBinding
or a Placement by hand. What a generated Placement names counts before OCM has decided it; a
Placement by hand counts where OCM has decided it. A ManifestWork counts as long as it is there,
because the workload runs: also after its Placement was deleted, and while OCM removes it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dsf.api.optimization import Optimization
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Selector
from optimizer.domain.solution import PolicyEnforcement
from optimizer.snapshot.object_readers import name_of, placement_of, read_policy
from optimizer.snapshot.observation import (
    KeptObjects,
    Observation,
    RequestedHub,
    kept_objects,
    running_works,
)
from optimizer.snapshot.ownership.namespace_reader import (
    Dependent,
    NamespaceReader,
    OthersPolicy,
    ResourceUse,
    amounts_of,
)

Dependents = Mapping[str, tuple[Dependent, ...]]
"""By cluster, the workloads of others that depend on its policies."""


@dataclass(slots=True)
class OthersOnCluster:
    """What others enforce and use on one cluster.

    `selected_use`: amounts by kind of all workloads that OCM has selected the cluster for, those of
    the request included; empty unless the hub has resource usage scores.
    """

    enforced: list[OthersPolicy] = field(default_factory=list)
    uses: list[ResourceUse] = field(default_factory=list)
    selected_use: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def others_on_clusters(hub: RequestedHub) -> Mapping[str, OthersOnCluster]:
    """Return what others enforce and use, by cluster."""
    found = defaultdict[str, OthersOnCluster](OthersOnCluster)
    for reader in _readers_of(hub):
        for cluster, policy in reader.enforced():
            if policy not in found[cluster].enforced:
                found[cluster].enforced.append(policy)
        for cluster, use in reader.uses():
            found[cluster].uses.append(use)
        for cluster, workload in reader.selected() if hub.observation.usage_scores else ():
            for kind, amount in amounts_of(workload):
                found[cluster].selected_use[kind] += amount
    return {name: item for name, item in found.items() if name in hub.request.cluster_names}


def decided_works(hub: RequestedHub) -> Mapping[str, Mapping[str, str]]:
    """Return by cluster the ManifestWorks that a plan of the request decides about.

    Each with its workload. Those that the request does not name, and that its plan removes, are
    among them. Where ManifestWorks can't be listed, they have the names of their workloads.
    """
    if hub.observation.works is None:
        named = {item.name: item.name for item in hub.request.target_workloads}
        return {item.name: named for item in hub.request.clusters}
    found = defaultdict[str, dict[str, str]](dict)
    own = next(_readers_of(hub))
    for cluster, work, workload in own.decided():
        found[cluster][work] = workload
    return found


def dependents_on_clusters(hub: RequestedHub, *, claim_name: str) -> Dependents:
    """Return by cluster the workloads of others that depend on its policies.

    OCM stops what requires a claim of the cluster: all its policies have one claim. What runs
    without a Placement requires none, and its devices are divided anew.
    """
    return _dependents(_readers_of(hub), claim_name)


def dependents_of_others(
    observation: Observation,
    owner: Optimization,
    select: Mapping[str, Selector],
    *,
    workloads: frozenset[str],
    claim_name: str,
) -> Dependents:
    """Return the same for an optimization that places these workloads."""
    readers = _readers(observation, owner, select, targets=workloads)
    return _dependents(readers, claim_name)


def _dependents(readers: Iterable[NamespaceReader], claim_name: str) -> Dependents:
    found = defaultdict[str, dict[Dependent, None]](dict)
    for reader in readers:
        for cluster, dependent in reader.depending(claim_name):
            found[cluster][dependent] = None
    return {name: tuple(sorted(items)) for name, items in found.items()}


def policies_of_others(
    observation: Observation, owner: Optimization, select: Mapping[str, Selector]
) -> Mapping[str, list[OthersPolicy]]:
    """Return the policies that others than an optimization enforce, by cluster."""
    found = defaultdict[str, list[OthersPolicy]](list)
    for reader in _readers(observation, owner, select):
        for cluster, policy in reader.enforced():
            found[cluster].append(policy)
    return found


def contradicting(
    choices: Iterable[PolicyEnforcement],
    observation: Observation,
    owner: Optimization,
    select: Mapping[str, Selector],
    made: Iterable[Object] = (),
) -> Iterator[tuple[PolicyEnforcement, OthersPolicy]]:
    """Yield each choice of an optimization beside a policy that others enforce in the same pool.

    `made`: policies that do not exist yet. A policy that does not exist contradicts none.
    """
    policies = {name_of(obj): obj for obj in (*observation.policies, *made)}
    others = policies_of_others(observation, owner, select)
    for choice in choices:
        if choice.policy not in policies or choice.cluster not in others:
            continue
        own = read_policy(policies[choice.policy], choice.cluster)
        for item in others[choice.cluster]:
            same = (item.namespace, item.policy.policy) == (owner.namespace, choice.policy)
            if isinstance(own, CandidatePolicy) and own.pool == item.policy.pool and not same:
                yield choice, item


def _readers_of(hub: RequestedHub) -> Iterator[NamespaceReader]:
    """Yield the readers for a request, whose own plan decides on its workloads.

    Workloads that share a Placement can't be planned, so they are nobody's targets.
    """
    named = {item.name for item in hub.request.target_workloads}
    targets = {
        name_of(i): placement_of(i) for i in hub.observation.workloads if name_of(i) in named
    }
    shared = Counter(targets.values())
    alone = frozenset(name for name, placement in targets.items() if shared[placement] == 1)
    kept = kept_objects(hub.observation, hub.request, hub.running)
    return _readers(hub.observation, hub.request.owner, hub.select, kept, alone)


def _readers(
    observation: Observation,
    owner: Optimization,
    select: Mapping[str, Selector],
    kept: KeptObjects = frozenset(),
    targets: frozenset[str] = frozenset(),
) -> Iterator[NamespaceReader]:
    """Yield a reader of the owner's namespace, and one of each other namespace."""
    works = running_works(observation.works or ())
    own = NamespaceReader(
        owner.namespace, observation, select, works.pop(owner.namespace, {}), owner, kept, targets
    )
    yield own
    unread = Observation(named=False)
    for namespace in sorted({*observation.elsewhere, *works}):
        seen = observation.elsewhere.get(namespace, unread)
        yield NamespaceReader(namespace, seen, select, works.get(namespace, {}))
