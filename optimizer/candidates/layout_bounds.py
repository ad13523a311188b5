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
    CLOSE,
    DemandSubproblem,
    DualBound,
    SupplyOffer,
    SupplySubproblem,
    minimised_dual,
)
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import GPU_KIND, CandidatePolicy, Cluster, Fleet, OmittedLayouts, Supply
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Solution, Status, Tier
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


_LESS: Mapping[Status, Status] = {"Optimal": "Feasible", "Infeasible": "NotSolved"}
"""The status that is still proven where omitted layouts may be worth more."""


def bounded_over_all_layouts(fleet: Fleet, solution: Solution) -> Solution:
    """Return the solution with bounds and a status that hold over all layouts."""
    if not fleet.omitted_layouts or solution.bound is None:
        return solution
    values = {tier.priority: tier.value for tier in solution.tiers}
    return with_wider_bounds(solution, fleet.omitted_layouts, value_bounds(fleet, values))


def with_wider_bounds(
    solution: Solution, omitted: Iterable[OmittedLayouts], most: Mapping[int, float]
) -> Solution:
    """Return the solution with bounds over all layouts; `most`: an upper bound by priority.

    The highest priority has a second bound. Every feasible decision becomes feasible over the
    candidates after removing some workloads, which are worth at most the sum of the pools' bounds.
    Lower priorities have no such bound, because the smaller decision may be worse in the highest
    priority, for whose optimum alone their bounds hold. It does not hold either where the
    candidates leave a priority without assignments: costs then count in another tier.
    """
    known = {tier.priority: tier for tier in solution.tiers}
    tiers = [known.get(priority, Tier(priority, 0.0, 0.0)) for priority in sorted(most)[::-1]]
    bounds = [most[tier.priority] for tier in tiers]
    if tiers and len(known) == len(tiers):
        bounds[0] = min(bounds[0], tiers[0].bound + sum(item.bound for item in omitted))
    made = tuple(map(_widened, tiers, bounds))
    bound = sum(tier.bound for tier in made)
    less = _LESS if bound > (solution.bound or 0.0) else {}
    status = less.get(solution.status, solution.status)
    return replace(solution, status=status, bound=bound, tiers=made)


def _widened(tier: Tier, bound: float) -> Tier:
    """Return a tier with another bound, if it differs by more than solvers' tolerances."""
    alike = abs(bound - tier.bound) <= CLOSE * max(1.0, abs(tier.bound))
    return tier if alike else tier._replace(bound=max(tier.value, bound))


def omitted_layout_issues(omitted: Iterable[OmittedLayouts], more: float) -> Iterator[Issue]:
    """Yield an issue for each pool with omitted layouts; `more`: the most that all can be worth."""
    for item in omitted if more > 0 else ():
        yield Issue(
            reason="FewerLayouts",
            message=f"cluster {item.cluster}: the {item.kept} generated candidates leave out"
            f" layouts of its GPUs that can be worth up to {min(more, item.bound):g} more;"
            " raise mig.maxCandidates",
            cluster=item.cluster,
        )
