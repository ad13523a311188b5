"""Re-solves: the last decision and its prices, tried on a problem that has changed a little.

Prices are kept by the names of workloads and rules, so that they outlive the numbers of a problem.
The bound of a Lagrangian relaxation holds at any prices, so those of the last solve prove a bound
of the changed problem by one pricing of its blocks. Where the last decision, mended, is close
enough to it, the problem is solved without a solver. Where only values changed, the last bound is
carried over too: no decision gains more than its values rise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Decision, Solution, TierPrices
from optimizer.model.current_state import feasible_part, incumbent_from_current_state
from optimizer.model.decision_comparison import SAME_VALUE, worth_more
from optimizer.model.objective import tier_values, upper_bounds
from optimizer.model.parameters import Limit, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.bound_rounding import is_whole, rounded_bound
from optimizer.solve.blocks.reduction import Reduction, reduce_to_blocks, tier_weights
from optimizer.solve.greedy import fill_remaining
from optimizer.solve.move_reduction import reduce_moves
from optimizer.solve.pricing.lagrangian_relaxation import (
    assignment_profits,
    items_if_few,
    price_blocks,
)
from optimizer.solve.search.column_enumeration import unfixed_variables
from optimizer.solve.search.cyclic_exchanges import improve_by_exchanges
from optimizer.solve.time_limit import is_close, with_status
from optimizer.solve.tuning import ALL_ITEMS_ASSIGNMENTS, SINGLE_MODEL_VARIABLES

_REPRICED_SHARE = 0.05
"""Share of the workloads whose values changed, up to which their last prices are not taken."""

_PROHIBITIVE = 1e12
"""A price at which no site takes a workload."""


@dataclass(frozen=True, slots=True)
class SolvedProblem:
    """A problem and its solution; the next solve of a similar problem starts from them."""

    problem: Problem
    solution: Solution


def kept_for_next(problem: Problem, solution: Solution) -> SolvedProblem | None:
    """Return what the next solve starts from, with compact values; None if nothing would."""
    if not solution.prices or problem.values.size > ALL_ITEMS_ASSIGNMENTS:
        return None
    return SolvedProblem(Problem(**problem.__getstate__()), solution)


def mended(problem: Problem, decision: Decision, stop: Callable[[], bool]) -> Decision:
    """Return the decision as far as this problem allows it, with what else fits."""
    if not violations(problem, decision):
        return decision
    known = (problem.policy_index.get(item) for item in decision.policies)
    pairs = ((workload, [at]) for workload, at in problem.indexes_of(decision.assignments))
    part = feasible_part(problem, [policy for policy in known if policy is not None], list(pairs))
    return fill_remaining(problem, part, stop)


def resolve(
    problem: Problem,
    previous: SolvedProblem,
    *,
    gap: float,
    stop: Callable[[], bool],
    clock: Callable[[], float],
    small: int = SINGLE_MODEL_VARIABLES,
) -> tuple[Solution, bool] | None:
    """Return a solution near that of a similar problem, and whether it is within the gap.

    If it is not, a search starts from it. None for problems that are solved as soon from scratch,
    of up to `small` variables, or too large for the memory of this process. Calls no solver.
    """
    prices = {item.priority: item for item in previous.solution.prices}
    if problem.size <= small or problem.values.size > ALL_ITEMS_ASSIGNMENTS:
        return None
    started = clock()
    rises, last = _value_rises(previous.problem, problem), previous.solution.decision
    known = incumbent_from_current_state(problem)
    if known != last:
        # No rule depends on values: where only those changed, the last decision keeps every rule.
        if rises is None or None in map(problem.indexes, last.assignments):
            last = mended(problem, last, stop)
        if known is None or worth_more(tier_values(problem, last), tier_values(problem, known)):
            known = last
    bounds, enough = list[float](), True
    for tier, priority in enumerate(problem.tiers):
        start = _TierStart(problem, tier, prices.get(priority), previous, rises)
        known, value, bound, prices[priority] = start.resolved(known, gap, stop)
        bounds.append(bound)
        enough = is_close(value, bound, gap)
        if not enough:
            break
    if enough:
        known = fill_remaining(problem, reduce_moves(problem, known, stop), stop)
    found = with_status(
        problem,
        known,
        (bounds, bounds if enough else upper_bounds(problem)),
        clock() - started,
        previous.solution.solver,
    )
    return replace(found, prices=tuple(prices.values())), enough


@dataclass(frozen=True, slots=True)
class _TierStart:
    """A tier of a problem, its last prices, the similar problem solved, and what values rose."""

    problem: Problem
    tier: int
    prices: TierPrices | None
    last: SolvedProblem
    rises: Floats | None

    def resolved(
        self, known: Decision, gap: float, stop: Callable[[], bool]
    ) -> tuple[Decision, float, float, TierPrices]:
        """Return the decision, improved by exchanges if need be, its value, a bound, its prices."""
        problem, tier = self.problem, self.tier
        found = self.prices or TierPrices(problem.tiers[tier], {}, {})
        values, (weights, of_policies) = tier_values(problem, known), tier_weights(problem, tier)
        if not weights.any() and not (of_policies and any(item.value for item in problem.policies)):
            return known, values[tier], 0.0, found
        if self.prices is not None and len(problem.tiers) == 1 and self.rises is not None:
            carried = self._carried(self.rises, values[tier])
            if is_close(values[tier], carried, gap):
                return known, values[tier], carried, found
        reduction = (
            None
            if self.prices is None
            else reduce_to_blocks(problem, weights, of_policies, floors=values[:tier], stop=stop)
        )
        if reduction is None:
            return known, values[tier], np.inf, found
        value, (bound, found) = values[tier], self._bound(reduction, found, values[tier], gap)
        if not is_close(value, bound, gap):
            enough = (bound / (1.0 + gap) if bound > 0 else bound) - SAME_VALUE
            known = improve_by_exchanges(problem, known, stop, tier=tier, enough=enough)
            value = tier_values(problem, known)[tier]
        return known, value, max(bound, value), found

    def _bound(
        self, reduction: Reduction, prices: TierPrices, value: float, gap: float
    ) -> tuple[float, TierPrices]:
        """Return the lower of the bounds at the last prices and at those of what changed."""
        blocks, items = reduction.blocks, items_if_few(reduction.blocks)
        whole, lowest, best = is_whole(blocks), np.inf, prices
        tried = [prices]
        for known in tried:
            at = numbered(reduction, self.problem, known)
            pricing = price_blocks(blocks, items, at)
            if pricing.bound < lowest:
                lowest, best = pricing.bound, named(reduction, self.problem, self.tier, at)
            if is_close(value, lowest, gap):
                break
            if self.rises is None:
                break
            if len(self.problem.tiers) == 1:
                unfixed = unfixed_variables(blocks, at, pricing, max(0.0, pricing.bound - value))
                usable = reduction.spread(*unfixed, self.problem)[0]
                lowest = min(lowest, self._carried(np.where(usable, self.rises, 0.0), value))
            if known is prices:
                tried += self._repriced(prices, self.rises)
        return rounded_bound(lowest, whole), best

    def _repriced(self, prices: TierPrices, rises: Floats) -> list[TierPrices]:
        """Return the last prices without those of workloads whose values changed, if few did."""
        workloads = self.problem.workloads
        changed = {workloads[at].name for at in np.flatnonzero(rises.any(axis=1)).tolist()}
        if not 0 < len(changed) <= _REPRICED_SHARE * len(workloads):
            return []
        others = {name: price for name, price in prices.workloads.items() if name not in changed}
        return [prices._replace(workloads=others)]

    def _carried(self, rises: Floats, value: float) -> float:
        """Return the last bound plus what values rose.

        A decision has of each workload as many assignments as it has replicas, and was worth at
        most the last bound before they rose. `rises`: 0 for assignments that no decision has that
        is worth more than `value`.
        """
        rose = np.maximum(rises, 0.0)
        gained = 0.0
        for workload in np.flatnonzero(rose.any(axis=1)).tolist():
            replicas = self.problem.workloads[workload].replicas
            gained += float(np.sort(rose[workload])[-replicas:].sum())
        last = self.last.solution.bound
        return np.inf if last is None else max(value, last + gained)


def _value_rises(before: Problem, now: Problem) -> Floats | None:
    """Return by how much values rose [workloads, resources], -inf where an assignment is gone.

    None where anything but values changed, or an assignment came. What runs now may differ: rules
    do not depend on it.
    """
    same = all(
        getattr(before, name) == getattr(now, name)
        for name in ("clusters", "resources", "labels", "priorities", "nodes")
    )
    # What runs now stays on its nodes, so there rules do depend on it.
    same &= not now.nodes or before.workloads == now.workloads
    if not same or _timeless(before) != _timeless(now) or not np.array_equal(before.base, now.base):
        return None
    limits = zip(before.limits, now.limits, strict=False)
    if len(before.limits) != len(now.limits) or not all(_same(*pair) for pair in limits):
        return None
    gone, came = np.isnan(now.values), np.isnan(before.values)
    if (came & ~gone).any():
        return None
    rises: Floats = np.where(gone, np.where(came, 0.0, -np.inf), now.values - before.values)
    return rises


def _timeless(problem: Problem) -> tuple[Sequence[ProblemWorkload], Sequence[ProblemPolicy]]:
    """Return workloads and policies without what runs now."""
    workloads = [
        replace(item, current=(), running=()) if item.current else item
        for item in problem.workloads
    ]
    return workloads, [item._replace(current=False) for item in problem.policies]


def _same(one: Limit, other: Limit) -> bool:
    return (one.name, one.most) == (other.name, other.most) and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("counted", "workloads", "policies", "assignments")
    )


def named(reduction: Reduction, problem: Problem, tier: int, prices: Prices) -> TierPrices:
    """Return the prices of a reduction's classes and rows as those of workloads and rules."""
    workloads = {
        problem.workloads[workload].name: price
        for members, price in zip(reduction.workloads, prices.workloads.tolist(), strict=True)
        for workload in members.tolist()
    }
    rows = zip(reduction.blocks.linking.says, prices.linking.tolist(), strict=True)
    return TierPrices(problem.tiers[tier], workloads, dict(rows))


def numbered(reduction: Reduction, problem: Problem, known: TierPrices) -> Prices:
    """Return known prices for the classes and rows of a reduction.

    A class has the mean of its members. A row without a price has 0, a class without one what its
    members are worth at the other prices (`_with_marginal_prices`).
    """
    workloads = np.array(
        [_mean(problem, own.tolist(), known.workloads) for own in reduction.workloads]
    )
    rows = np.array([known.rows.get(row, 0.0) for row in reduction.blocks.linking.says])
    if not np.isnan(workloads).any():
        return Prices(workloads, rows)
    return _with_marginal_prices(reduction.blocks, Prices(workloads, rows))


def _mean(problem: Problem, members: list[int], known: Mapping[str, float]) -> float:
    prices = (known.get(problem.workloads[workload].name) for workload in members)
    found = [price for price in prices if price is not None]
    return sum(found) / len(found) if found else np.nan


def _with_marginal_prices(blocks: BlockProblem, prices: Prices) -> Prices:
    """Return the prices, and for NaN what an assignment of the class adds to its best site.

    One assignment of w on resource r, in a mode that supplies c of it, adds to a site

        value_wr - (best_r(c) - best_r(c - size_w)) - what the mode loses against the best one

    where best_r is the knapsack table without w. With n assignments, the n-th best site counts.
    """
    unknown = np.flatnonzero(np.isnan(prices.workloads))
    found = np.nan_to_num(prices.workloads)
    without = Prices(np.nan_to_num(prices.workloads, nan=_PROHIBITIVE), prices.linking)
    pricing = price_blocks(blocks, items_if_few(blocks), without)
    lost = (pricing.site_profits[blocks.mode_sites] - pricing.mode_profits)[blocks.supply_modes]
    best = pricing.knapsacks.best[blocks.supply_resources]
    profits = assignment_profits(blocks, Prices(found, prices.linking))
    rows = np.arange(len(best))
    full = best[rows, blocks.supply_amounts]
    sites = blocks.resource_sites[blocks.supply_resources]
    for workload in unknown.tolist():
        size = int(blocks.sizes[workload])
        rest = best[rows, np.maximum(blocks.supply_amounts - size, 0)]
        added = profits[workload, blocks.supply_resources] - (full - rest) - lost
        added[blocks.supply_amounts < size] = -np.inf
        most = np.full(len(blocks.copies), -np.inf)
        np.maximum.at(most, sites, added)
        counted = np.sort(np.repeat(most, blocks.copies))[::-1]
        at = min(int(blocks.counts[workload]), len(counted)) - 1
        found[workload] = max(0.0, float(counted[at]))
    return Prices(found, prices.linking)
