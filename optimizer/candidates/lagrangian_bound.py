"""Minimises the Lagrangian dual of resources and limits: an upper bound on every decision.

With a multiplier (price) u_r >= 0 for each resource and limit r, base b_r, demand d and supply s:

    L(u) = sum_r u_r b_r
         + sum_w max { sum_i (v_wi - sum_r u_r d_wir) y_wi : at most replicas_w assignments i }
         + sum_pools max { 0, sum_r u_r s_pr - cost_p : one policy p, or a layout for each GPU }

L(u) is an upper bound for every u; L is convex and piecewise linear. `model.subgradient` lowers it.
`layout_bounds` explains why the bound holds.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from optimizer.candidates.tuning import (
    DUAL_PATIENCE,
    DUAL_STEP_SHRINK,
    DUAL_STEPS,
    DUAL_TARGET,
    SUBGRADIENT_WEIGHT,
)
from optimizer.domain.arrays import Floats, Ints, first_maxima
from optimizer.model.problem import Problem
from optimizer.model.subgradient import StepRule, minimise

CLOSE = 1e-6
"""Relative: values that are closer count as equal, as for solvers."""

_DUAL_CELLS = 40_000_000
"""Coefficients read in all evaluations together at most: about two seconds."""

Key = TypeVar("Key", bound=tuple[object, ...])


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


class DualBound(NamedTuple):
    """The lowest bound found, and the best alternative of each offer in every evaluation."""

    bound: float
    chosen: list[NDArray[np.int16]]


def minimised_dual(
    demanded: DemandSubproblem, supplied: SupplySubproblem, right_hand_sides: Floats, found: float
) -> DualBound:
    """Return the lowest bound found; `found` is the value of a known decision, which is below it.

    `right_hand_sides` [resources and limits]: b_r.
    """
    chosen, lowest = list[NDArray[np.int16]](), np.inf
    rounds = min(DUAL_STEPS, _DUAL_CELLS // max(1, demanded.cells + supplied.cells))
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
        closed = lowest - found <= CLOSE * max(1.0, abs(found))
        return closed or len(chosen) >= rounds

    rule = StepRule(
        fresh=SUBGRADIENT_WEIGHT,
        kept=1 - SUBGRADIENT_WEIGHT,
        distance=lambda value, best, size: size * (value - max(found, DUAL_TARGET * best)),
        patience=DUAL_PATIENCE,
        shrink=DUAL_STEP_SHRINK,
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
