"""Candidates for a fleet: generated where GPUs are known, then chosen like any other policy."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from dsf.api.optimization import Optimization
from dsf.kube.selectors import valid_selector
from optimizer.candidates import pool_candidates as mig
from optimizer.candidates.layout_bounds import mean_pattern_counts
from optimizer.candidates.pool_candidates import composed_candidate
from optimizer.candidates.tuning import PRICED_CANDIDATES
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    OmittedLayouts,
    Supply,
    Workload,
    net_supplies,
)
from optimizer.domain.issue import Issue
from optimizer.domain.mig.demand import Demand, DeviceRequest
from optimizer.domain.mig.gpu_pools import GpuPool, GpuPools, ReconfigurationRules, possible_devices
from optimizer.domain.nodes import GPU_KIND
from optimizer.domain.solution import PolicyEnforcement

Dependents = Mapping[str, tuple[Workload, ...]]
"""For each workload, those that may need it on their cluster, directly or through others."""

Value = Callable[[str, str], float | None]
"""What an app's assignment on a device of a cluster is worth; None where it has none."""


def dependents(workloads: Iterable[Workload]) -> Dependents:
    """Return the dependents of each workload that an affinity selector matches."""
    every = list(workloads)
    direct: dict[str, list[Workload]] = {}
    for text in dict.fromkeys(item.workload_affinity for item in every if item.workload_affinity):
        wanted, users = valid_selector(text), [i for i in every if i.workload_affinity == text]
        for host in every:
            if wanted.matches(host.labels):
                direct.setdefault(host.name, []).extend(users)
    return {name: _all(name, direct) for name in direct}


def affinity_bonus(needing: Dependents, cluster: Cluster, value: Value) -> Mapping[str, float]:
    """Return an upper bound on what the dependents of each workload are worth on a cluster."""
    known = {item.name: item for found in needing.values() for item in found}
    best = {name: max(0.0, _best(item, cluster, value)) for name, item in known.items()}
    return {host: sum(best[item.name] for item in found) for host, found in needing.items()}


def _all(host: str, direct: Mapping[str, Iterable[Workload]]) -> tuple[Workload, ...]:
    found, ahead = dict[str, Workload](), [host]
    while ahead:
        new = {item.name: item for item in direct.get(ahead.pop(), ()) if item.name not in found}
        found.update(new)
        ahead += new
    return tuple(item for name, item in found.items() if name != host)


def _best(dependent: Workload, cluster: Cluster, value: Value) -> float:
    devices = dict.fromkeys(item.device for item in cluster.supplies if item.kind == dependent.kind)
    values = [found for name in devices if (found := value(dependent.app, name)) is not None]
    stays = dependent.move_cost if cluster.name in dependent.running else 0.0
    return max(values, default=0.0) + stays


RequestCounts = Mapping[tuple[str, float, float, float], int]
"""Number of workloads by app, amount, move cost saved by staying, and affinity bonus."""

_FINE = 1e6
"""Mean counts are rounded to this fraction: their sums are whole but for rounding errors."""


def with_candidates(
    fleet: Fleet,
    pools: GpuPools,
    rules: ReconfigurationRules,
    running: Collection[PolicyEnforcement] = (),
) -> Fleet:
    """Return a fleet whose clusters have candidates for what its workloads ask of their GPUs.

    `running`: the policies in force. What changes no layout, or is in force, costs nothing.
    A device without a score is not asked for, and no gap. Gaps name clusters where no device is
    asked for.
    """
    if not pools:
        return fleet
    clusters, issues, omitted = [], list[Issue](), list[OmittedLayouts]()
    needing = dependents(fleet.workloads)
    for cluster in fleet.clusters:
        own = cluster.candidates
        wide = _with_any_device(cluster, pools)
        counts = _request_counts(fleet, wide, needing) if pools.get(cluster.name) else {}
        for pool in pools.get(cluster.name, ()):
            helped = _helped(cluster, pool, pools[cluster.name])
            demand = _demand(fleet, pool, counts, helped)
            found = _generated(fleet.owner, cluster, pool, demand, rules)
            if cluster.no_new_policies:
                found = _in_force(cluster.name, found, running)
            own = _joined(own, cluster, pool, found.items, running)
            issues += [] if found.items else [_not_asked(cluster.name)]
            omitted += [found.omitted_layouts] if found.omitted_layouts else []
        clusters.append(replace(cluster, candidates=own))
    made = replace(
        fleet,
        clusters=tuple(clusters),
        issues=(*fleet.issues, *issues),
        omitted_layouts=tuple(omitted),
    )
    most = min(PRICED_CANDIDATES, rules.most // 8)
    return _with_priced(made, pools, running, most) if omitted and most else made


def _with_any_device(cluster: Cluster, pools: GpuPools) -> Cluster:
    """Return a cluster with one more candidate, which supplies every device that its GPUs could."""
    devices = dict.fromkeys(
        name for pool in pools.get(cluster.name, ()) for name in possible_devices(pool)
    )
    if not devices:
        return cluster
    any_of_them = CandidatePolicy("", tuple(Supply(GPU_KIND, name, 1) for name in devices))
    return replace(cluster, candidates=(*cluster.candidates, any_of_them))


def _with_priced(
    fleet: Fleet, pools: GpuPools, running: Collection[PolicyEnforcement], most: int
) -> Fleet:
    """Return a fleet with a few candidates more where many were left out.

    They have the layouts that the relaxation over all workloads and all GPUs prefers.
    """
    clusters, omitted = {item.name: item for item in fleet.clusters}, list[OmittedLayouts]()
    for item, found in zip(fleet.omitted_layouts, mean_pattern_counts(fleet), strict=True):
        (pool,) = (each for each in pools[item.cluster] if each.name == item.pool)
        made = [
            composed_candidate(fleet.owner, pool, item, counts) for counts in rounded(found, most)
        ]
        cluster = clusters[item.cluster]
        known = {each.policy for each in cluster.candidates}
        new = [each for each in made if each.supplies and each.policy not in known]
        joined = _joined(cluster.candidates, cluster, pool, new, running)
        clusters[item.cluster] = replace(cluster, candidates=joined)
        omitted.append(item._replace(kept=item.kept + len(new)))
    return replace(fleet, clusters=tuple(clusters.values()), omitted_layouts=tuple(omitted))


def rounded(mean_counts: Iterable[Floats], times: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield distinct integer roundings of the mean counts of each group, with the same sums."""
    ends = [np.concatenate([[0.0], np.cumsum(found)]) for found in mean_counts]
    ends = [np.round(found * _FINE) / _FINE for found in ends]  # sums are whole, but for errors
    ways = [
        tuple(
            tuple(np.diff(np.floor(found + (at + 0.5) / times)).astype(int).tolist())
            for found in ends
        )
        for at in range(times)
    ]
    yield from dict.fromkeys(ways)


def _generated(
    owner: Optimization,
    cluster: Cluster,
    pool: GpuPool,
    demand: Demand,
    rules: ReconfigurationRules,
) -> mig.PoolCandidates:
    """Return candidates, the policy in force included, so that a change must be worth its cost."""
    found = mig.pool_candidates(owner, pool, demand, rules)
    known = {item.policy for item in found.items}
    enforced = [item for item in cluster.enforced if known and item.policy not in known]
    made = [
        mig.candidate_with_layouts(owner, pool, demand, rules, item.declared_layouts)
        for item in enforced
    ]
    pairs = zip(enforced, made, strict=True)
    kept = [new for item, new in pairs if new is not None and new.policy == item.policy]
    left = found.omitted_layouts
    return mig.PoolCandidates(
        (*found.items, *kept), left and left._replace(kept=left.kept + len(kept))
    )


def _in_force(
    cluster: str, found: mig.PoolCandidates, running: Collection[PolicyEnforcement]
) -> mig.PoolCandidates:
    kept = (item for item in found.items if PolicyEnforcement(cluster, item.policy) in running)
    return mig.PoolCandidates(tuple(kept), None)


def _joined(
    own: tuple[CandidatePolicy, ...],
    cluster: Cluster,
    pool: GpuPool,
    found: Iterable[CandidatePolicy],
    running: Collection[PolicyEnforcement],
) -> tuple[CandidatePolicy, ...]:
    """Return a cluster's candidates with those found, less what others use of their supplies."""
    made = [
        replace(
            item,
            supplies=net_supplies(item.supplies, cluster.used_by_others)[0],
            current=item.current or PolicyEnforcement(pool.cluster, item.policy) in running,
        )
        for item in found
    ]
    names = {item.policy for item in made}
    return (*(item for item in own if item.policy not in names), *made)


def _request_counts(fleet: Fleet, cluster: Cluster, needing: Dependents) -> RequestCounts:
    more = affinity_bonus(needing, cluster, partial(_value, fleet, cluster.name))
    return Counter(
        (
            item.app,
            item.amount,
            item.move_cost if cluster.name in item.running else 0.0,
            more.get(item.name, 0.0),
        )
        for item in fleet.workloads
        if item.kind == GPU_KIND
    )


def _helped(cluster: Cluster, pool: GpuPool, pools: Iterable[GpuPool]) -> frozenset[str]:
    """Return the devices that a cluster can have besides those that a pool supplies."""
    others = (item for item in cluster.candidates if item.pool != pool.name)
    supplies = chain(cluster.base, *(item.supplies for item in others))
    beside = {supply.device for supply in supplies if supply.kind == GPU_KIND}
    return frozenset(beside.union(*(possible_devices(item) for item in pools if item is not pool)))


def _demand(fleet: Fleet, pool: GpuPool, counts: RequestCounts, helped: Collection[str]) -> Demand:
    worth = {
        device: _worth(fleet, pool.cluster, device, counts) for device in possible_devices(pool)
    }
    return Demand.of(
        {
            device: _requests(worth[device], most, pieces=device in helped)
            for device, most in possible_devices(pool).items()
        },
        before_costs=len({item.priority for item in fleet.workloads}) > 1,
    )


def _worth(
    fleet: Fleet, cluster: str, device: str, counts: RequestCounts
) -> list[tuple[float, float, int]]:
    """Return (value, amount, workloads) of what is asked of a device, the highest value first."""
    values = {app: _value(fleet, cluster, app, device) for app, *_ in counts}
    found = [
        (max(value + gain, 0.0) + brings, amount, count)
        for (app, amount, gain, brings), count in counts.items()
        if (value := values[app]) is not None
    ]
    return sorted(found, reverse=True)


def _requests(
    worth: Iterable[tuple[float, float, int]], most: int, *, pieces: bool
) -> Iterator[DeviceRequest]:
    """Yield the requests for a device; of equal amounts no more than fit.

    `pieces`: a part of what a workload asks for may come from elsewhere, so that any number of
    instances can be what it lacks, and be worth all of it.
    """
    fitting: Counter[int] = Counter()
    for value, amount, count in worth:
        # A fraction of an instance counts as single ones.
        single = pieces or not amount or amount != int(amount)
        whole, times = (1, math.ceil(amount)) if single else (int(amount), 1)
        taken = max(0, min(most // whole - fitting[whole], count * max(1, times)))
        fitting[whole] += taken
        yield from [DeviceRequest(whole, value)] * taken


def _value(fleet: Fleet, cluster: str, app: str, device: str) -> float | None:
    total = 0.0
    for item in fleet.objectives:
        score = fleet.scores[item.score].get((cluster, app, device))
        if score is None or math.isnan(score):
            return None
        total += item.value(score)
    return total


def _not_asked(cluster: str) -> Issue:
    return Issue(
        reason="NoGpuDemand",
        message=f"cluster {cluster}: no policy is generated for its GPUs; no workload of kind"
        f" {GPU_KIND} has a score above 0 for a device that they can be configured for, in the"
        " amount that it asks for",
        cluster=cluster,
    )
