"""Bounds the value of every decision over all layouts, whether candidates cover them or not.

Relax what couples workloads and pools, the capacity of each resource and each fleet-wide limit,
with a price u_r >= 0 for each resource and limit r. With base b_r, demand d and supply s, no
decision is worth more than

    L(u) = sum_r u_r b_r
         + sum_w max { sum_i (v_wi - sum_r u_r d_wir) y_wi : at most replicas_w assignments i }
         + sum_pools max { 0, sum_r u_r s_pr - cost_p : one policy p, or a layout for each GPU }

where a pool of which layouts were omitted may take the best pattern of each GPU.

Proof: a feasible decision has no negative slack, so adding price times slack lowers no value.
Afterwards nothing couples workloads and pools, and each is worth at most its own best. A pool's
supply is the sum over its GPUs, so its best layouts are the best pattern of each GPU.
Rules without a price only forbid decisions.

L is convex and piecewise linear; `model.subgradient` lowers it. The lowest is the bound of the
linear relaxation (A. M. Geoffrion, "Lagrangean relaxation for integer programming", Mathematical
Programming Study 2, 1974), in which GPUs have fractions of layouts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from optimizer.candidates import tuning
from optimizer.domain.arrays import Floats, Ints, first_maxima
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, OmittedLayouts, Supply
from optimizer.domain.issue import Issue
from optimizer.domain.nodes import GPU_KIND
from optimizer.domain.solution import Solution, Status, Tier
from optimizer.model.formulate import formulate
from optimizer.model.parameters import ClusterResource
from optimizer.model.problem import Problem
from optimizer.model.subgradient import StepRule, minimise

_CLOSE = 1e-6
"""Relative: values that are closer count as equal, as for solvers."""

_DUAL_CELLS = 40_000_000
"""Coefficients read in all evaluations together at most: about two seconds."""

Key = TypeVar("Key", bound=tuple[object, ...])

_EVERYTHING = ""
"""The name of the policy that makes what every omitted layout supplies possible."""


class SupplyOffer(NamedTuple):
    """Alternative supplies of a policy, or of each of `gpus` equal GPUs; one of them is chosen.

    `supplies`: (resource, amount) pairs of each alternative; `costs`: one cost each. A `pool` takes
    one of its ways to be configured, `way`, and one alternative of each offer of that way.
    """

    pool: tuple[int, str]
    way: int
    gpus: int
    supplies: tuple[tuple[tuple[int, float], ...], ...]
    costs: tuple[float, ...]


class DualBound(NamedTuple):
    """The lowest bound found, and the best alternative of each offer in every evaluation."""

    bound: float
    chosen: list[NDArray[np.int16]]


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
    alike = abs(bound - tier.bound) <= _CLOSE * max(1.0, abs(tier.bound))
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


class DemandSubproblem:
    """The best assignments of each workload at given prices, and their demand."""

    def __init__(self, problem: Problem, values: Floats) -> None:
        assignments, uses, resources = problem.assignments, problem.demand, len(problem.resources)
        rows, columns, amounts = (
            [uses.resource],
            [uses.column - len(problem.policies)],
            [uses.amount],
        )
        for row, limit in enumerate(problem.limits, resources):
            used = limit.used(assignments.workload, assignments.resource)
            columns.append(np.nonzero(used)[0])
            rows.append(np.full(len(columns[-1]), row))
            amounts.append(used[columns[-1]])
        self.resources = resources + len(problem.limits)
        self._row, self._assignment = np.concatenate(rows), np.concatenate(columns)
        self._amount = np.concatenate(amounts)
        self._values, self._workload = values, assignments.workload
        self._replicas = np.array(
            [workload.replicas for workload in problem.workloads], dtype=np.int64
        )

    @property
    def cells(self) -> int:
        """The number of coefficients that one evaluation reads."""
        return len(self._row) + len(self._values)

    def largest(self) -> Floats:
        """Return the most that an assignment takes of each resource; 1 where none does."""
        most = np.zeros(self.resources)
        np.maximum.at(most, self._row, self._amount)
        return np.where(most > 0, most, 1.0)

    def best(self, prices: Floats) -> tuple[float, Floats]:
        """Return the value of the best assignments, and their demand for each resource."""
        paid = _sums(self._assignment, self._amount * prices[self._row], len(self._values))
        left = self._values - paid
        order = np.nonzero(left > 0)[0]
        order = order[np.lexsort((-left[order], self._workload[order]))]
        workload = self._workload[order]
        rank = np.arange(len(workload)) - np.searchsorted(workload, workload)
        chosen = np.zeros(len(left), dtype=np.bool_)
        chosen[order[rank < self._replicas[workload]]] = True
        taken = np.where(chosen[self._assignment], self._amount, 0.0)
        return float(left[chosen].sum()), _sums(self._row, taken, self.resources)


class SupplySubproblem:
    """The best configuration of each pool at given prices, and its supply."""

    def __init__(self, offers: Sequence[SupplyOffer], resources: int) -> None:
        self._resources = resources
        items = [len(offer.costs) for offer in offers]
        self._starts = np.concatenate([[0], np.cumsum(items)]).astype(np.int64)[:-1]
        self._count = np.array([offer.gpus for offer in offers], dtype=np.float64)
        self._costs = np.array([cost for offer in offers for cost in offer.costs])
        self._way, ways = _numbered([(offer.pool, offer.way) for offer in offers])
        self._pool, _ = _numbered([pool for pool, _ in ways])
        every = [pairs for offer in offers for pairs in offer.supplies]
        cells = [(row, item, amount) for item, pairs in enumerate(every) for row, amount in pairs]
        self._row = np.array([row for row, _, _ in cells], dtype=np.int64)
        self._item = np.array([item for _, item, _ in cells], dtype=np.int64)
        self._amount = np.array([amount for _, _, amount in cells])

    @property
    def cells(self) -> int:
        """How much there is to look at."""
        return len(self._row)

    def best(self, prices: Floats) -> tuple[float, Floats, Ints]:
        """Return the value of the best supplies, their amounts, and each offer's alternative."""
        if not len(self._costs):
            return 0.0, np.zeros(self._resources), np.zeros(0, dtype=np.int64)
        earned = _sums(self._item, self._amount * prices[self._row], len(self._costs))
        item = first_maxima(earned - self._costs, self._starts)
        of_offer = self._count * (earned - self._costs)[item]
        of_way = _sums(self._way, of_offer, len(self._pool))
        way = first_maxima(of_way, np.searchsorted(self._pool, np.unique(self._pool)))
        way = way[of_way[way] > 0]
        amounts = np.zeros(len(self._costs))
        chosen = np.isin(self._way, way)
        amounts[item[chosen]] = self._count[chosen]
        supplied = _sums(self._row, self._amount * amounts[self._item], self._resources)
        return float(of_way[way].sum()), supplied, item - self._starts


def minimised_dual(
    demanded: DemandSubproblem, supplied: SupplySubproblem, right_hand_sides: Floats, found: float
) -> DualBound:
    """Return the lowest bound found; `found` is the value of a known decision, which is below it.

    `right_hand_sides` [resources and limits]: b_r.
    """
    chosen, lowest = list[NDArray[np.int16]](), np.inf
    rounds = min(tuning.DUAL_STEPS, _DUAL_CELLS // max(1, demanded.cells + supplied.cells))
    if not rounds:
        return DualBound(lowest, chosen)

    def evaluate(prices: Floats) -> tuple[float, Floats]:
        nonlocal lowest
        (worth, taken), (more, given, items) = demanded.best(prices), supplied.best(prices)
        chosen.append(items.astype(np.int16))
        bound = worth + more + float((right_hand_sides * prices).sum())
        lowest = min(lowest, bound)
        return bound, right_hand_sides + given - taken

    def stop() -> bool:
        closed = lowest - found <= _CLOSE * max(1.0, abs(found))
        return closed or len(chosen) >= rounds

    rule = StepRule(
        fresh=tuning.SUBGRADIENT_WEIGHT,
        kept=1 - tuning.SUBGRADIENT_WEIGHT,
        distance=lambda value, best, size: size * (value - max(found, tuning.DUAL_TARGET * best)),
        patience=tuning.DUAL_PATIENCE,
        shrink=tuning.DUAL_STEP_SHRINK,
        least_size=1e-2,
        project_direction=True,
    )
    minimise(evaluate, np.zeros(len(right_hand_sides)), rule, stop, demanded.largest())
    return DualBound(float(lowest), chosen)


def _sums(rows: Ints, amounts: Floats, count: int) -> Floats:
    return np.bincount(rows, amounts, count).astype(np.float64)


def _numbered(keys: Sequence[Key]) -> tuple[Ints, list[Key]]:
    """Return the number of each key, and the keys, in their order; equal ones stand together."""
    distinct = list(dict.fromkeys(keys))
    number = {key: index for index, key in enumerate(distinct)}
    return np.array([number[key] for key in keys], dtype=np.int64), distinct
