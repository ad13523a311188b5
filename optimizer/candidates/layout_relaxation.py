"""What no decision over all layouts is worth more than, candidates for them or not.

Give each device of each cluster, and each fleet-wide limit, a price that is not below 0. Then a
decision is worth no more than the sum of
- of each workload, its best assignments (as many as its replicas) less what they take at those
prices, none below 0; - of each pool, the dearest supply at those prices, less its cost: of one of
its policies, or, where layouts were left out, GPU by GPU of the patterns open to it; or nothing; -
what clusters have without a policy, and what limits allow, at those prices.

Proof: what a decision takes is no more than what there is, so adding what remains of it times its
price makes no decision worth less. Then nothing couples workloads and pools any more, and each of
their parts is at most its best. A pool's supply is the sum over its GPUs, so the best combination
of layouts is the best of each. Rules that have no price only forbid decisions.

The lowest such sum is the optimum of the linear relaxation (Geoffrion, "Lagrangean relaxation for
integer programming", 1974), in which the GPUs of a pool may have layouts in parts: much is bound by
it that a single cluster by itself, with a demand of its choice, would not be. Prices are found by
subgradients with steps after Polyak ("Minimization of unsmooth functionals", 1969).
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
    """Return what no decision is worth more than in each priority by itself.

    `found`: what one is worth; the closer to the best, the better the answer.
    """
    problem = formulate(_with_everything(fleet))
    return {
        priority: value_bound(problem, fleet.left_out, tier, found.get(priority, 0.0))
        for tier, priority in enumerate(problem.tiers)
    }


def value_bound(
    problem: Problem, left_out: Sequence[OmittedLayouts], tier: int, found: float
) -> float:
    """Return what no decision is worth more than in a priority.

    Policies without a name only stand for assignments; no decision has them.
    """
    costs = tier == len(problem.tiers) - 1
    offers = _offers(problem, left_out, problem.weights(tier), costs=costs)
    return _lowered(problem, offers, problem.weights(tier), found).bound


def mean_pattern_counts(fleet: Fleet) -> list[list[Floats]]:
    """Return how many GPUs of each group have which pattern at prices that suit the fleet.

    By pool that leaves out layouts, group and pattern; an average over prices, so no whole numbers.
    """
    problem = formulate(_with_everything(fleet))
    weights, first = problem.weights(), len(problem.policies)
    offers = _offers(problem, fleet.left_out, weights, costs=True)
    rounds = _lowered(problem, offers, weights, 0.0).chosen
    chosen = np.array(rounds[len(rounds) // 2 :], dtype=np.int64).reshape(-1, len(offers))
    found = [list[Floats]() for _ in fleet.left_out]
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
    problem: Problem, left_out: Iterable[OmittedLayouts], weights: Floats, *, costs: bool
) -> list[SupplyOffer]:
    """Return all offers, those of a way together; `costs`: those of layouts count."""
    found = [*_policies(problem, weights), *_layouts(problem, left_out, costs=costs)]
    return sorted(found, key=lambda item: (item.pool, item.way))


def _with_everything(fleet: Fleet) -> Fleet:
    """Return a fleet in which each assignment exists that some layout left out has room for."""
    every = {
        name: tuple(_everything(item) for item in found)
        for name, found in groupby(fleet.left_out, key=lambda item: item.cluster)
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
    problem: Problem, left_out: Iterable[OmittedLayouts], *, costs: bool
) -> Iterator[SupplyOffer]:
    """Yield what each GPU can be, in ways beside those of the policies."""
    for way, item in enumerate(left_out, len(problem.policies)):
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
