"""Bounds the value of every decision over all layouts, whether candidates cover them or not.

Relax what couples workloads and pools, the capacity of each resource and each fleet-wide limit,
with a price u >= 0. Then no decision is worth more than the sum of

- for each workload, its best assignments at those prices, at most as many as its replicas;
- for each pool, the best supply at those prices less its cost: of one of its policies or, where
  layouts were omitted, of the best pattern of each GPU; or nothing;
- the price of what clusters have without a policy, and of what limits allow.

Proof: a feasible decision has no negative slack, so adding price times slack lowers no value.
Afterwards nothing couples workloads and pools, and each is worth at most its own best. A pool's
supply is the sum over its GPUs, so its best layouts are the best pattern of each GPU.
Rules without a price only forbid decisions.

The lowest such sum is the bound of the linear relaxation (A. M. Geoffrion, "Lagrangean relaxation
for integer programming", Mathematical Programming Study 2, 1974), in which GPUs have fractions of
layouts. `lagrangian_bound` gives the formula and finds the prices.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from optimizer.candidates.lagrangian_bound import (
    DemandSubproblem,
    DualBound,
    SupplyOffer,
    SupplySubproblem,
    minimised_dual,
)
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Supply
from optimizer.domain.gpu_layout import GPU_KIND, OmittedLayouts
from optimizer.model.formulate import formulate
from optimizer.model.problem import ClusterResource, Problem

_EVERYTHING = ""


def value_bounds(fleet: Fleet, found: Mapping[int, float]) -> Mapping[int, float]:
    """Return, for each priority alone, an upper bound on the value of every decision.

    `found`: the value of a known decision; the closer it is to the best, the tighter the bound.
    """
    problem = formulate(_with_everything(fleet))
    return {
        priority: value_bound(problem, fleet.omitted_layouts, tier, found.get(priority, 0.0))
        for tier, priority in enumerate(problem.tiers)
    }


def value_bound(
    problem: Problem, omitted: Sequence[OmittedLayouts], tier: int, found: float
) -> float:
    """Return an upper bound on the value of every decision in one priority.

    A policy without a name only makes assignments possible; no decision enforces it.
    """
    costs = tier == len(problem.tiers) - 1
    offers = _offers(problem, omitted, problem.weights(tier), costs=costs)
    return _lowered(problem, offers, problem.weights(tier), found).bound


def mean_pattern_counts(fleet: Fleet) -> list[list[Floats]]:
    """Return the mean number of GPUs with each pattern over the last prices of the descent.

    By pool with omitted layouts, then group; arrays [patterns]. The means approximate a solution of
    the linear relaxation, so they are fractional.
    """
    problem = formulate(_with_everything(fleet))
    weights, first = problem.weights(), len(problem.policies)
    offers = _offers(problem, fleet.omitted_layouts, weights, costs=True)
    rounds = _lowered(problem, offers, weights, 0.0).chosen
    chosen = np.array(rounds[len(rounds) // 2 :], dtype=np.int64).reshape(-1, len(offers))
    found = [list[Floats]() for _ in fleet.omitted_layouts]
    for offer, items in zip(offers, chosen.T, strict=True):
        if offer.way >= first:
            counts = np.bincount(items, minlength=len(offer.costs))
            found[offer.way - first].append(offer.gpus * counts / max(1, len(items)))
    return found


def _lowered(
    problem: Problem, offers: Sequence[SupplyOffer], weights: Floats, found: float
) -> DualBound:
    demanded = DemandSubproblem(problem, weights[len(problem.policies) :])
    supplied = SupplySubproblem(offers, demanded.resources)
    room = np.concatenate([problem.base, [item.most for item in problem.limits]])
    return minimised_dual(demanded, supplied, room, found)


def _offers(
    problem: Problem, omitted: Iterable[OmittedLayouts], weights: Floats, *, costs: bool
) -> list[SupplyOffer]:
    """Return all offers, ordered by pool and way; `costs`: whether costs of layouts count."""
    found = [*_policies(problem, weights), *_layouts(problem, omitted, costs=costs)]
    return sorted(found, key=lambda item: (item.pool, item.way))


def _with_everything(fleet: Fleet) -> Fleet:
    """Return the fleet with every assignment that some omitted layout makes possible."""
    every = {
        name: tuple(_everything(item) for item in found)
        for name, found in groupby(fleet.omitted_layouts, key=lambda item: item.cluster)
    }

    def widened(cluster: Cluster) -> Cluster:
        more = every.get(cluster.name, ())
        return replace(cluster, candidates=(*cluster.candidates, *more))

    return replace(fleet, clusters=tuple(map(widened, fleet.clusters)))


def _everything(pool: OmittedLayouts) -> CandidatePolicy:
    most = np.zeros(len(pool.devices))
    for count, patterns in pool.groups:
        most += count * np.array([item.supply for item in patterns]).max(axis=0)
    pairs = zip(pool.devices, most.tolist(), strict=True)
    supplies = tuple(Supply(GPU_KIND, device, amount) for device, amount in pairs)
    return CandidatePolicy(_EVERYTHING, supplies, pool.pool)


def _policies(problem: Problem, weights: Floats) -> Iterator[SupplyOffer]:
    first = len(problem.resources)
    for number, policy in enumerate(problem.policies):
        if policy.name != _EVERYTHING:
            uses = enumerate((-float(item.policies[number]) for item in problem.limits), first)
            supplies = (*policy.supplies, *uses)
            pool = policy.cluster, policy.pool
            yield SupplyOffer(pool, number, 1, (supplies,), (-float(weights[number]),))


def _layouts(
    problem: Problem, omitted: Iterable[OmittedLayouts], *, costs: bool
) -> Iterator[SupplyOffer]:
    """Yield the patterns of each GPU group, as further ways to configure a pool."""
    for way, item in enumerate(omitted, len(problem.policies)):
        cluster = problem.cluster_index[item.cluster]
        resources = [
            problem.resource_index.get(ClusterResource(cluster, GPU_KIND, name))
            for name in item.devices
        ]
        for count, patterns in item.groups:
            supplies = tuple(
                tuple(
                    (s, float(n))
                    for s, n in zip(resources, found.supply, strict=True)
                    if s is not None
                )
                for found in patterns
            )
            paid = tuple(found.cost if costs else 0.0 for found in patterns)
            yield SupplyOffer((cluster, item.pool), way, count, supplies, paid)
