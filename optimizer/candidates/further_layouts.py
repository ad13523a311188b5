"""Policies that a pool of GPUs could have if its GPUs were free, or if more were generated."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dsf.api.untrusted_text import listed
from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, ProfileCounts, gpu_name
from optimizer.domain.mig import gpu_pools
from optimizer.domain.mig.demand import Demand
from optimizer.domain.solution import PolicyEnforcement

_MOST_DRAINED = 64
"""Policies generated for a pool where the request allows fewer: a repair is worth the search."""

_LOWEST = -1e9
"""Below every score: cut to a range from here to 1 above, every score counts as the highest."""


@dataclass(frozen=True, slots=True)
class FurtherLayout:
    """A policy that is not a candidate, what it divides GPUs into, and which GPUs to free for it.

    `regenerate` returns a fleet with the candidates that it has once these GPUs are free.
    """

    policy: CandidatePolicy
    divided: tuple[tuple[str, ProfileCounts | None], ...]
    freed: tuple[str, ...]
    regenerate: Callable[[Fleet], Fleet]


FurtherLayouts = Mapping[tuple[str, str], tuple[FurtherLayout, ...]]
"""By cluster and pool."""

NO_FURTHER_LAYOUTS: FurtherLayouts = {}


def further_layouts(
    fleet: Fleet,
    pools: gpu_pools.GpuPools,
    rules: gpu_pools.ReconfigurationRules,
    running: Collection[PolicyEnforcement] = (),
) -> FurtherLayouts:
    """Return, for a fleet with candidates, the policies whose supply no candidate covers.

    They are generated as if GPUs could be drained, and every usable score were the same.
    """
    alike = (
        replace(item, weight=1.0, minimum=_LOWEST, maximum=_LOWEST + 1, invert=False)
        for item in fleet.objectives
    )
    costs = gpu_pools.ReconfigurationCosts(rules.costs.reconfigure)
    drain = gpu_pools.ReconfigurationRules("drain", costs, max(rules.most, _MOST_DRAINED))
    wide = with_candidates(replace(fleet, objectives=tuple(alike)), pools, drain)
    generate = partial(with_candidates, rules=rules, running=running)
    found = {
        (cluster.name, pool.name): tuple(_further(cluster, every, pool, rules, generate))
        for cluster, every in zip(fleet.clusters, wide.clusters, strict=True)
        for pool in pools.get(cluster.name, ())
    }
    return {pool: layouts for pool, layouts in found.items() if layouts}


def gpu_names(names: Sequence[str]) -> str:
    """Return `GPU 0`, or `GPUs 0, 1`."""
    return f"{'GPU' if len(names) == 1 else 'GPUs'} {listed(names)}"


def _further(
    cluster: Cluster,
    every: Cluster,
    pool: gpu_pools.GpuPool,
    rules: gpu_pools.ReconfigurationRules,
    generate: Callable[..., Fleet],
) -> Iterator[FurtherLayout]:
    own, found = ([i for i in c.candidates if i.pool == pool.name] for c in (cluster, every))
    for policy in found:
        if policy.layouts and not any(_covers(known, policy) for known in own):
            divided, busy = _changes(pool, policy)
            freed = () if rules.mode == "drain" else busy
            once_free = {pool.cluster: (_once_free(pool, freed),)}
            yield FurtherLayout(policy, divided, freed, partial(generate, pools=once_free))


def _covers(known: CandidatePolicy, other: CandidatePolicy) -> bool:
    amounts = {supply[:2]: supply.amount for supply in known.supplies}
    return all(amounts.get(supply[:2], 0.0) >= supply.amount for supply in other.supplies)


def _changes(
    pool: gpu_pools.GpuPool, policy: CandidatePolicy
) -> tuple[tuple[tuple[str, ProfileCounts | None], ...], tuple[str, ...]]:
    """Return the GPUs that a policy divides anew with their layouts, and those to free for it."""
    divided, freed = list[tuple[str, ProfileCounts | None]](), list[str]()
    for node, layout in zip(pool.nodes, policy.layouts, strict=True):
        pairs = list(zip(_names(node), node.gpus, layout.gpus, strict=True))
        changed = [(name, gpu, new) for name, gpu, new in pairs if not _has(gpu, new)]
        # Turning MIG on or off resets every GPU of the node.
        switched = any((new is None) != gpu.mig_disabled for _, gpu, new in changed)
        reset = {name for name, *_ in (pairs if switched else changed)}
        divided += [(name, new) for name, _, new in changed]
        freed += [name for name, gpu, _ in pairs if name in reset and _in_use(gpu)]
    return tuple(divided), tuple(freed)


def _once_free(pool: gpu_pools.GpuPool, freed: Collection[str]) -> gpu_pools.GpuPool:
    return replace(pool, nodes=tuple(_node_once_free(node, freed) for node in pool.nodes))


def _node_once_free(node: gpu_pools.NodeGpus, freed: Collection[str]) -> gpu_pools.NodeGpus:
    gpus = [
        replace(gpu, busy=(), foreign=(), in_use=False, foreign_use=False) if name in freed else gpu
        for name, gpu in zip(_names(node), node.gpus, strict=True)
    ]
    busy = sum(map(_in_use, gpus))
    return replace(node, gpus=tuple(replace(gpu, node_busy=busy > _in_use(gpu)) for gpu in gpus))


def _names(node: gpu_pools.NodeGpus) -> list[str]:
    return [gpu_name(node.name, index) for index in range(len(node.gpus))]


def _has(gpu: gpu_pools.Gpu, instances: ProfileCounts | None) -> bool:
    now = gpu_pools.current_pattern(gpu, Demand(()))
    return now is not None and now.instances == instances


def _in_use(gpu: gpu_pools.Gpu) -> bool:
    return bool(gpu.busy or gpu.in_use)
