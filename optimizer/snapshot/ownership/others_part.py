"""Takes the part of others out of clusters and their GPUs, and names each part with its owner.

What runs without the hub is known as far as OCM's resource usage scores tell. The add-on
resource-usage-collect publishes AddOnPlacementScores `resource-usage-score` with the entries
cpuAvailable and memAvailable: allocatable minus requests of all pods, 0 to 100 cores and 0 to 1 TiB
scaled linearly to -100..100 and cut to an integer.

Source: resource-usage-collect-addon/pkg/addon/agent/calculate.go of
https://github.com/open-cluster-management-io/addon-contrib
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dsf.api.scoring.quantity import format_quantity, parse_quantity
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.kinds import MANIFEST_WORK, NODE_INVENTORY
from dsf.kube.port import Object
from optimizer.domain.fleet import Cluster, Supply, Workload, net_supplies
from optimizer.domain.issue import Issue, TakenIssue
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.nodes import GPU_KIND
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.namespace_reader import UNNAMED, OthersPolicy, ResourceUse
from optimizer.snapshot.ownership.others import OthersOnCluster

USAGE_SCORE = "resource-usage-score"

_FULL_SCALE = {"cpu": ("cpuAvailable", 100.0), "memory": ("memAvailable", 2.0**40)}
"""The entry of a kind, and the amount at which its score is 100 and says no more."""


def unexplained_use(
    managed_cluster: Object, score: Object, explained: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    """Yield (kind, amount) of what pods request and no workload of the hub explains.

    amount = allocatable - available - explained. `score` is the cluster's, empty if it has none.
    The largest available amount that a score can stand for is taken, so nothing is deducted twice
    because of its rounding.
    """
    listed = (score.get("status") or {}).get("scores") or ()
    entries = {str(item.get("name")): item.get("value") for item in listed}
    allocatable = (managed_cluster.get("status") or {}).get("allocatable") or {}
    for kind, (entry, full) in _FULL_SCALE.items():
        value, most = entries.get(entry), parse_quantity(str(allocatable.get(kind)))
        if not isinstance(value, int) or most is None or not -100 <= value < 100:  # noqa: PLR2004
            continue
        # Go cuts towards 0: 5 stands for up to 6, and -5 for at most -5.
        available = full * (value + (100 if value < 0 else 101)) / 200
        amount = most - available - explained.get(kind, 0.0)
        if amount > 0:
            yield kind, amount


def without_others_part(
    clusters: Iterable[Cluster],
    pools: GpuPools,
    others: Mapping[str, OthersOnCluster],
    *,
    namespace: str,
    workloads: Iterable[Workload],
    observation: Observation,
) -> tuple[tuple[Cluster, ...], GpuPools, tuple[Issue, ...]]:
    """Return clusters and GPUs without what others hold of them, and an issue of each part.

    A pool on which somebody else enforces a policy has no other candidate. What others' workloads
    use is taken from what the cluster supplies, then from each candidate that supplies it.
    """
    kinds = {kind for item in workloads for kind in (item.kind, *dict(item.requests))}
    managed = {name_of(obj): obj for obj in observation.managed_clusters}
    usage = {obj["metadata"].get("namespace"): obj for obj in observation.usage_scores}
    left, issues = list[Cluster](), list[Issue]()
    for cluster in clusters:
        there = others.get(cluster.name, OthersOnCluster())
        kept, excluded = _without_contradicting(cluster, there.enforced, namespace)
        used, found = _used(cluster, there, kinds)
        issues += [*excluded, *found]
        score = usage.get(cluster.name, {})
        more, unexplained = _unexplained(cluster, there, kinds, managed[cluster.name], score)
        issues += unexplained
        left.append(_net(kept, [*used, *more]))
    held = {(name, item.policy.pool) for name, there in others.items() for item in there.enforced}
    free = {
        name: [pool for pool in own if (name, pool.name) not in held] for name, own in pools.items()
    }
    issues += _held_pools(pools, others)
    issues += _unread(observation)
    return tuple(left), {name: own for name, own in free.items() if own}, tuple(issues)


def _without_contradicting(
    cluster: Cluster, enforced: Iterable[OthersPolicy], namespace: str
) -> tuple[Cluster, list[Issue]]:
    issues, excluded = list[Issue](), set[str]()
    for item in enforced:
        against = [
            policy
            for policy in cluster.candidates
            if policy.pool == item.policy.pool
            and (item.namespace, item.policy.policy) != (namespace, policy.policy)
        ]
        names = [policy.policy for policy in against]
        excluded.update(names)
        if against:
            issues.append(
                TakenIssue(
                    reason="HeldByOthers",
                    message=f"cluster {cluster.name}: {enforces(item)} in the same pool, so"
                    f" {listed(names)} can't be enforced",
                    cluster=cluster.name,
                    owner=item.owner,
                    taken=frozenset(i[:2] for policy in against for i in policy.supplies),
                )
            )
    left = tuple(policy for policy in cluster.candidates if policy.policy not in excluded)
    return replace(cluster, candidates=left), issues


def _held_pools(pools: GpuPools, others: Mapping[str, OthersOnCluster]) -> Iterator[Issue]:
    for name, own in pools.items():
        for item in others.get(name, OthersOnCluster()).enforced:
            if any(pool.name == item.policy.pool for pool in own):
                yield TakenIssue(
                    reason="HeldByOthers",
                    message=f"cluster {name}: {enforces(item)} for the GPUs, so no policy is"
                    " generated for them",
                    cluster=name,
                    owner=item.owner,
                    taken=frozenset({(GPU_KIND, "")}),
                )


def enforces(item: OthersPolicy) -> str:
    """Return who enforces which policy, as far as the caller may know."""
    what = "a policy" if item.owner == UNNAMED else f"policy {UntrustedName(item.policy.policy)}"
    return f"{item.owner} enforces {what}"


def _used(
    cluster: Cluster, there: OthersOnCluster, kinds: Iterable[str]
) -> tuple[list[Supply], list[Issue]]:
    """Return what others use of the kinds that the request asks for, and an issue of each user.

    Which device a workload of others runs on is not recorded: what it may run on counts as used.
    """
    used, by_owner = list[Supply](), defaultdict[tuple[str, str], list[ResourceUse]](list)
    asked = set(kinds)
    for use in there.uses:
        for kind, amount in use.amounts:
            if kind in asked and amount:
                devices = _devices(cluster, there.enforced, kind)
                used += [Supply(kind, device, amount) for device in devices]
                by_owner[use.owner, kind].append(use)
    return used, [
        TakenIssue(
            reason="UsedByOthers",
            message=f"cluster {cluster.name}: {users_text(owner, found)} uses"
            f" {_sum(found, kind)} {UntrustedName(kind)}, which is not planned again",
            cluster=cluster.name,
            owner=owner,
            taken=frozenset({(kind, "")}),
            users=() if owner == UNNAMED else tuple(use.workload for use in found),
        )
        for (owner, kind), found in by_owner.items()
    ]


def users_text(owner: str, uses: Iterable[ResourceUse]) -> str:
    """Return which workloads of an owner use something, as far as the caller may know."""
    return owner if owner == UNNAMED else f"{listed([use.workload for use in uses])} of {owner}"


def _sum(uses: Iterable[ResourceUse], kind: str) -> str:
    return format_quantity(float(sum(dict(use.amounts)[kind] for use in uses)))


def _devices(cluster: Cluster, enforced: Iterable[OthersPolicy], kind: str) -> list[str]:
    """Return the devices that a workload may run on, of those that policies in force supply."""
    in_force = [item.policy for item in enforced]
    in_force += [item for item in (*cluster.candidates, *cluster.enforced) if item.current]
    supplied = [*cluster.base, *(supply for item in in_force for supply in item.supplies)]
    found = {supply.device for supply in supplied if supply.kind == kind}
    return sorted(found or {item.device for item in cluster.supplies if item.kind == kind})


def _unexplained(
    cluster: Cluster, there: OthersOnCluster, kinds: Iterable[str], managed: Object, score: Object
) -> tuple[list[Supply], list[Issue]]:
    """Return what runs without the hub of the kinds that the request asks for, and issues of it."""
    used, issues = list[Supply](), list[Issue]()
    for kind, amount in unexplained_use(managed, score, there.selected_use):
        if kind in kinds and cluster.nodes is None and not _stated(cluster, managed, kind):
            used.append(Supply(kind, "", amount))
            issues.append(
                TakenIssue(
                    reason="UsedWithoutTheHub",
                    message=f"cluster {cluster.name}: about {format_quantity(amount)} {kind} are"
                    " requested by pods that no workload of the hub explains"
                    " (resource-usage-score), which is not planned again",
                    cluster=cluster.name,
                    taken=frozenset({(kind, "")}),
                )
            )
    return used, issues


def _stated(cluster: Cluster, managed: Object, kind: str) -> bool:
    """Return whether the request or an annotation states what is allocatable of a kind."""
    text = ((managed.get("status") or {}).get("allocatable") or {}).get(kind)
    amount = parse_quantity(str(text))
    return [item.amount for item in cluster.base if item.kind == kind] != [amount]


def _net(cluster: Cluster, used: Sequence[Supply]) -> Cluster:
    """Return a cluster whose base and candidates supply less by what others use."""
    if not used:
        return cluster
    base, rest = net_supplies(cluster.base, used)
    candidates = (
        replace(item, supplies=net_supplies(item.supplies, rest)[0]) for item in cluster.candidates
    )
    return replace(
        cluster,
        base=base,
        used_by_others=rest,
        candidates=tuple(item for item in candidates if item.supplies or item.current),
    )


def _unread(observation: Observation) -> Iterator[Issue]:
    kinds = list(observation.unread)
    kinds += [MANIFEST_WORK.kind] if observation.works is None else []
    kinds += [NODE_INVENTORY.kind] if observation.inventories is None else []
    if kinds:
        yield Issue(
            reason="OthersNotRead",
            message="the optimizer may not list these kinds in other namespaces, so what these"
            f" enforce and use on the clusters is not known: {listed(kinds)}",
        )
