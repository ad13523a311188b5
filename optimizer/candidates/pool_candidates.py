"""Candidate policies of a GPU pool: one for each supply on the frontier of its GPUs."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from dsf.api.optimization import Optimization
from optimizer.candidates.frontier import Frontier, FrontierPoint, frontier
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import CandidatePolicy, GpuPattern, NodeLayout, OmittedLayouts, Supply
from optimizer.domain.mig.demand import Demand
from optimizer.domain.mig.gpu_pools import (
    Gpu,
    GpuPool,
    ReconfigurationRules,
    current_pattern,
    device_counts,
    pattern_with,
    patterns,
)
from optimizer.domain.nodes import GPU_KIND

_NAME_LIMIT = 63
"""Characters of `<namespace>.<policy>`, the name that OCM gives a replicated policy."""

_DIGITS = 8
"""Hexadecimal digits of the layouts' digest in a policy's name."""


@dataclass(frozen=True, slots=True)
class PoolCandidates:
    """Candidates of one pool in order of preference, and what was omitted.

    One that changes no GPU is `current`. Supplies include what others use.
    """

    items: tuple[CandidatePolicy, ...]
    omitted_layouts: OmittedLayouts | None = None


def pool_candidates(
    owner: Optimization, pool: GpuPool, demand: Demand, rules: ReconfigurationRules
) -> PoolCandidates:
    """Return the candidates that serve a demand: what is there now first, then the cheapest.

    One of them covers every supply that the GPUs can be configured for, except for at most
    `omitted_layouts.bound` of the demand's value.
    """
    gpus = tuple(chain.from_iterable(node.gpus for node in pool.nodes))
    if not demand.devices:
        return PoolCandidates(())
    reached = _frontier(gpus, demand, rules)
    points = [point for point in reached.points if any(point.supply)]
    unchanged = _unchanged(gpus, demand)
    if unchanged is not None and any(unchanged.supply):
        points = [unchanged, *(point for point in points if point.changed)]
    items = tuple(_made(owner, pool, _sorted_alike(pool, point.patterns)) for point in points)
    if reached.bound <= 0:
        return PoolCandidates(items)
    groups = tuple(
        (count, patterns(gpu, demand, rules.mode, rules.costs))
        for gpu, count in Counter(gpus).items()
    )
    devices = demand.devices
    return PoolCandidates(
        items, OmittedLayouts(pool.cluster, pool.name, len(items), reached.bound, devices, groups)
    )


def composed_candidate(
    owner: Optimization, pool: GpuPool, omitted: OmittedLayouts, counts: Sequence[Sequence[int]]
) -> CandidatePolicy:
    """Return the candidate with these numbers of GPUs by group and pattern."""
    gpus = [gpu for node in pool.nodes for gpu in node.gpus]
    queues = {
        gpu: [pattern for pattern, times in zip(patterns_, some, strict=True) for _ in range(times)]
        for gpu, (_, patterns_), some in zip(Counter(gpus), omitted.groups, counts, strict=True)
    }
    chosen = [queues[gpu].pop() for gpu in gpus]
    return _made(owner, pool, _sorted_alike(pool, chosen))


def candidate_with_layouts(
    owner: Optimization,
    pool: GpuPool,
    demand: Demand,
    rules: ReconfigurationRules,
    layouts: Iterable[NodeLayout],
) -> CandidatePolicy | None:
    """Return the candidate with given layouts; None where the pool's GPUs can't have them."""
    wanted = {item.node: item.gpus for item in layouts}
    if {name: len(gpus) for name, gpus in wanted.items()} != {
        node.name: len(node.gpus) for node in pool.nodes
    }:
        return None
    found = [
        pattern_with(gpu, instances, demand, rules.mode, rules.costs)
        for node in pool.nodes
        for gpu, instances in zip(node.gpus, wanted[node.name], strict=True)
    ]
    chosen = [item for item in found if item is not None]
    return _made(owner, pool, chosen) if len(chosen) == len(found) else None


def best_configuration(
    gpus: Sequence[Gpu], demand: Demand, rules: ReconfigurationRules
) -> tuple[FrontierPoint | None, float]:
    """Return what serves a demand best where each request is for one device, and a bound.

    None where that is to change nothing. No configuration is worth more than the point's value and
    the bound together.
    """

    def worth(point: FrontierPoint) -> float:
        return demand.value(point.supply) - point.cost

    reached = _frontier(tuple(gpus), demand, rules)
    chosen = max(reached.points, key=worth)
    return chosen if worth(chosen) >= 0 else None, reached.bound


@lru_cache(maxsize=1024)
def _frontier(gpus: tuple[Gpu, ...], demand: Demand, rules: ReconfigurationRules) -> Frontier:
    kinds = {gpu: patterns(gpu, demand, rules.mode, rules.costs) for gpu in set(gpus)}
    return frontier([kinds[gpu] for gpu in gpus], demand, most=rules.most)


def _unchanged(gpus: Sequence[Gpu], demand: Demand) -> FrontierPoint | None:
    kept = [current_pattern(gpu, demand) for gpu in gpus]
    known = tuple(item for item in kept if item is not None)
    if len(known) < len(kept):
        return None
    supply = tuple(map(sum, zip(*(item.supply for item in known), strict=True)))
    return FrontierPoint(supply, 0.0, 0, sum(item.pieces for item in known), known)


def _made(owner: Optimization, pool: GpuPool, chosen: Sequence[GpuPattern]) -> CandidatePolicy:
    supplies = Counter[str]()
    for pattern in chosen:
        supplies.update(dict(pattern.supplies))
    layouts = _layouts(pool, chosen)
    return CandidatePolicy(
        _name(owner, pool, layouts),
        tuple(Supply(GPU_KIND, *item) for item in sorted(supplies.items())),
        pool.name,
        current=not any(item.changed for item in chosen),
        cost=sum(item.cost for item in chosen),
        layouts=layouts,
    )


def _sorted_alike(pool: GpuPool, chosen: Sequence[GpuPattern]) -> list[GpuPattern]:
    """Assign patterns to equal GPUs in a stable order, so that equal decisions look alike."""
    gpus = [gpu for node in pool.nodes for gpu in node.gpus]
    queues = members_by_key(zip(gpus, chosen, strict=True))
    for queue in queues.values():
        queue.sort(key=lambda pattern: (pattern.changed, pattern.instances or ()), reverse=True)
    return [queues[gpu].pop() for gpu in gpus]


def _layouts(pool: GpuPool, chosen: Sequence[GpuPattern]) -> tuple[NodeLayout, ...]:
    remaining = iter(chosen)
    return tuple(_layout(node.name, [next(remaining) for _ in node.gpus]) for node in pool.nodes)


def _layout(node: str, chosen: Sequence[GpuPattern]) -> NodeLayout:
    taken = tuple(map(_taken, chosen))
    return NodeLayout(node, tuple(item.instances for item in chosen), taken if any(taken) else ())


def _taken(pattern: GpuPattern) -> tuple[tuple[str, int], ...]:
    left = dict(pattern.supplies)
    pairs = (
        (name, amount - left.get(name, 0)) for name, amount in device_counts(pattern.instances)
    )
    return tuple((name, amount) for name, amount in pairs if amount)


def _name(owner: Optimization, pool: GpuPool, layouts: Sequence[NodeLayout]) -> str:
    """Return `mig-<cluster>-<8 hex>`; the digits tell apart what the cut cluster name does not."""
    parts = [
        *owner.name_parts,
        pool.cluster,
        pool.name,
        [(item.node, item.gpus) for item in layouts],
    ]
    digits = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
    room = max(0, _NAME_LIMIT - len(owner.namespace) - len("mig-") - _DIGITS - 2)
    cluster = pool.cluster[:room].rstrip("-.")
    return f"mig-{cluster}-{digits}" if cluster else f"mig-{digits}"
