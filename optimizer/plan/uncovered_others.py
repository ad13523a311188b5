"""What a plan takes from others: their workloads that depend on policies which it changes.

A managed cluster has one claim for all its policies, of all namespaces. It is not compliant from
the first change until all of them have been compliant for the stable window, and OCM stops
meanwhile what requires it, whichever pool it runs on.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dsf.api.untrusted_text import counted, listed
from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import POLICY
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import PolicyEnforcement
from optimizer.snapshot.object_readers import cluster_selectors
from optimizer.snapshot.observation import Observation, RequestedHub, own_decisions
from optimizer.snapshot.ownership.namespace_reader import UNNAMED, Dependent
from optimizer.snapshot.ownership.others import (
    Dependents,
    dependents_on_clusters,
    policies_of_others,
)
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.rollout import UncoveredOthers

UNCOVERS_OTHERS = "UncoversOthers"
"""The reason of issues that name workloads of others that a plan uncovers."""


def losing_claims(
    observation: Observation,
    request: OptimizeRequest,
    settings: OptimizerSettings,
    after: Iterable[PolicyEnforcement],
    changes: Iterable[Change] = (),
) -> frozenset[str]:
    """Return the clusters whose claim is not compliant for a while after a plan is written.

    These get a policy that nobody enforced there, or a changed one, or lose their last one. The
    claim of a cluster that only has fewer policies stays compliant.
    """
    select = cluster_selectors(observation.managed_clusters, settings.cluster_label_key)
    before = own_decisions(observation, request, settings).policies
    others = {
        name: {(item.namespace, item.policy.policy) for item in found}
        for name, found in policies_of_others(observation, request.owner, select).items()
    }
    edited = {i.name for i in changes if i.kind == POLICY and isinstance(i, Patch)}
    was, will = _by_cluster(before), _by_cluster(after)
    found = set[str]()
    for cluster in {*was, *will}:
        shared = others.get(cluster, set())
        old, new = (
            {(request.namespace, policy) for policy in side.get(cluster, ())} | shared
            for side in (was, will)
        )
        if new - old or (old and not new) or edited.intersection(will.get(cluster, ())):
            found.add(cluster)
    return frozenset(found)


def uncovered_others(
    observation: Observation,
    request: OptimizeRequest,
    settings: OptimizerSettings,
    clusters: Iterable[str],
) -> Dependents:
    """Return by cluster the workloads of others that depend on the policies of these clusters."""
    select = cluster_selectors(observation.managed_clusters, settings.cluster_label_key)
    running = own_decisions(observation, request, settings)
    hub = RequestedHub(observation, request, select, running)
    found = dependents_on_clusters(hub, claim_name=settings.claim_name)
    return {name: found[name] for name in sorted(clusters) if name in found}


def as_result(found: Dependents) -> tuple[UncoveredOthers, ...]:
    """Return the workloads by cluster and owner; what may not be named is counted."""
    shown = list[UncoveredOthers]()
    for cluster, items in found.items():
        for owner, own in members_by_key((item.owner, item) for item in items).items():
            named = own[0].named
            shown.append(
                UncoveredOthers(
                    cluster=cluster,
                    owner=owner,
                    namespace=own[0].namespace if named else "",
                    workloads=tuple(sorted({i.workload for i in own})) if named else (),
                    count=len({i.key for i in own}),
                )
            )
    return tuple(shown)


def issues(found: Dependents) -> Iterator[Issue]:
    """Yield an issue for each cluster and owner whose workloads a plan uncovers."""
    for cluster, items in found.items():
        whose = defaultdict[tuple[str, bool], list[Dependent]](list)
        for item in items:
            whose[item.owner, item.left_over].append(item)
        for (owner, left_over), own in whose.items():
            who = counted(len(own), "workload")
            if owner != UNNAMED:
                who = listed(sorted({item.workload for item in own}))
            effect = f"OCM stops {who} of {owner} until all policies there are compliant again"
            if left_over:
                effect = f"the devices of {who} of {owner} are divided anew"
            yield Issue(
                reason=UNCOVERS_OTHERS,
                message=f"cluster {cluster}: {effect}, because the plan changes the policies",
                cluster=cluster,
            )


def _by_cluster(policies: Iterable[PolicyEnforcement]) -> dict[str, list[str]]:
    return members_by_key((item.cluster, item.policy) for item in sorted(policies))
