"""The columns of all near-optimal decisions, to choose among them without solving anew.

Every decision that is worth at least V consists of columns that lose at most U - V against the
prices of the whole problem (see `column_enumeration`). They are enumerated once; the best decision
without an assignment is then a master over the columns that a decision without it may have.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Assignment, Decision, Solution, Status
from optimizer.model.decision_comparison import SAME_VALUE
from optimizer.model.problem import Problem, objective
from optimizer.solve.blocks.block_problem import BlockProblem, LinkingRows, Prices
from optimizer.solve.blocks.bound_rounding import is_whole
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.blocks.reduction import Reduction, reduce_to_blocks
from optimizer.solve.pricing.lagrangian_dual import solve_lagrangian_dual
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult, price_blocks
from optimizer.solve.pricing.restricted_master import (
    generate_columns,
    is_feasible,
    solve_master,
    solve_relaxed_master,
)
from optimizer.solve.search.block_search import search_blocks
from optimizer.solve.search.column_enumeration import best_columns_within
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import LOSS_GROWTH

_MOST_ASSIGNMENTS, _MOST_CLASSES = 100_000, 600
"""Candidate assignments, and classes of sites and workloads, up to which prices are worth it."""

_SEARCH_SECONDS = 2.0
"""Seconds of a search for an equally good decision without one assignment."""

_NOTHING = Decision()


@dataclass(frozen=True, slots=True)
class _PricedBlocks:
    """The blocks of a problem, the prices of their Lagrangian dual, and their pricing."""

    reduction: Reduction
    prices: Prices
    pricing: PricingResult


@dataclass(frozen=True, slots=True)
class _LossWindow:
    """All columns of the decisions that are worth at least `least`, and the loss of each.

    A decision with a column is worth at most the bound less the loss of the column.
    """

    columns: Columns
    least: float
    lost: Floats


def near_optimal_columns(
    problem: Problem, value: float, *, solver: SolverName, seconds_left: Callable[[], float]
) -> "NearOptimalColumns | None":
    """Return the near-optimal columns of a problem whose optimum is worth `value`.

    None where it has several priorities, or is too large.
    """
    context = SolveContext(solver, 0.0, 0, seconds_left)
    priced = _prices(problem, context)
    return None if priced is None else NearOptimalColumns(problem, value, priced, context)


class NearOptimalColumns:
    """The near-optimal decisions of a problem with one priority."""

    def __init__(
        self, problem: Problem, value: float, priced: _PricedBlocks, context: SolveContext
    ) -> None:
        self._problem, self._value = problem, value
        self._priced, self._context = priced, context
        self._having = dict[int, Solution]()
        self._windows = list(self._found())

    def without(self, assignment: Assignment, most: float) -> Solution:
        """Return the best decision that lacks an assignment and loses less than `most`.

        Infeasible: there is none. NotSolved: there are too many columns, or the time is up.
        """
        for window in self._windows:
            worth = self._value - most + self._step
            enough = window.least <= worth
            found = self._chosen(assignment, window, max(window.least, worth))
            if found.status != "Infeasible" or enough:
                return found
        return self._solution("NotSolved")

    def with_workload(self, name: str) -> Solution:
        """Return the best decision with a workload or one identical to it; NotSolved: not known."""
        reduction, at = self._priced.reduction, self._problem.workload_index[name]
        workload = next(number for number, own in enumerate(reduction.workloads) if at in own)
        if (
            self._problem.values[reduction.workloads[workload]] < 0
        ).any():  # such assignments are in no column
            return self._solution("NotSolved")
        if workload not in self._having:
            blocks = replace(reduction.blocks, linking=_with_one_of(reduction.blocks, workload))
            wide = (
                window for window in self._windows if (window.columns.workloads == workload).any()
            )
            found = (self._best(window.columns, blocks, window.least) for window in wide)
            self._having[workload] = next(
                (item for item in found if item.status == "Optimal"), self._solution("NotSolved")
            )
        return self._having[workload]

    def search_without(self, assignment: Assignment) -> Solution:
        """Return a good decision that lacks an assignment; Optimal if none can be better."""
        part = self._problem.restricted(
            _all_but(self._problem, assignment), np.ones(len(self._problem.policies), np.bool_)
        )
        reduction = reduce_to_blocks(part, np.ones(len(part.workloads)))
        if reduction is None:
            return self._solution("NotSolved")
        ends = max(0.0, self._context.seconds_left() - _SEARCH_SECONDS)
        context = replace(self._context, seconds_left=lambda: self._context.seconds_left() - ends)
        incumbent = search_blocks(reduction.blocks, context, upper_bound=self._value).incumbent
        value = incumbent.value(reduction.blocks)
        status: Status = "Optimal" if self._value - value <= SAME_VALUE else "Feasible"
        return self._solution(status, reduction.decision(part, incumbent))

    def _chosen(self, assignment: Assignment, window: _LossWindow, least: float) -> Solution:
        lacking = self._lacking(assignment, window.columns)
        if lacking is None:
            return self._solution("NotSolved")
        lacking &= window.lost <= self._priced.pricing.bound - least + SAME_VALUE
        columns = window.columns.pick(np.flatnonzero(lacking))
        return self._best(columns, self._priced.reduction.blocks, least)

    def _best(self, columns: Columns, blocks: BlockProblem, least: float) -> Solution:
        """Return the best choice of columns; Infeasible if it is worth less than `least`."""
        times = self._times(columns, blocks, least)
        if times is None or not is_feasible(blocks, columns, times):
            return self._solution("NotSolved")
        decision = self._priced.reduction.decision(self._problem, columns.taken(times))
        if objective(self._problem, decision) < least - SAME_VALUE:
            return self._solution("Infeasible")
        return self._solution("Optimal", decision)

    def _times(self, columns: Columns, blocks: BlockProblem, least: float) -> Ints | None:
        """Return how often to take columns, none if the best choice is worth less than `least`.

        The relaxation decides that mostly. None: not known, or no choice satisfies the rows.
        """
        parts = solve_relaxed_master(blocks, columns, self._context)
        if parts is None:
            return None
        times = np.rint(parts[0]).astype(np.int64)
        if float(parts[0] @ columns.values(blocks)) < least - SAME_VALUE:
            return np.zeros(len(columns), np.int64)
        if np.abs(times - parts[0]).max(initial=0.0) <= SAME_VALUE:
            return times
        taken = solve_master(
            blocks,
            columns,
            self._context,
            start=np.zeros(len(columns), np.int64),
            cutoff=least - max(self._step / 2, SAME_VALUE),
        )
        return taken.multiplicities if taken is not None and taken.proven else None

    @property
    def _step(self) -> float:
        """The least difference between the values of two decisions; 0 if it is not known."""
        return 1.0 if is_whole(self._priced.reduction.blocks) else 0.0

    def _solution(self, status: Status, decision: Decision = _NOTHING) -> Solution:
        value = objective(self._problem, decision)
        return Solution(status, decision, value, None, 0.0, self._context.solver)

    def _found(self) -> Iterator[_LossWindow]:
        """Yield ever wider windows, up to as many columns as can be chosen among quickly."""
        dual = self._priced
        gap, before = dual.pricing.bound - self._value, 0
        loss = max(self._step, 2e-4 * abs(self._value))
        while not self._context.is_over():
            columns, complete_loss = best_columns_within(
                dual.reduction.blocks,
                dual.prices,
                dual.pricing,
                slack=gap + loss,
                limit=12_000,
                stop=self._context.is_over,
            )
            if complete_loss < gap + loss or len(columns) == before:
                return
            before = len(columns)
            worth = dual.pricing.site_profits[dual.reduction.blocks.mode_sites[columns.modes]]
            lost = worth - columns.profits(dual.reduction.blocks, dual.prices)
            yield _LossWindow(columns, self._value - loss, lost)
            loss *= LOSS_GROWTH

    def _lacking(self, assignment: Assignment, columns: Columns) -> Bools | None:
        """Return which columns a decision without the assignment may have; None if not known.

        Any of several identical workloads can be the one that lacks it.
        """
        at = self._problem.indexes(assignment)
        if at is None:
            return None
        reduction = self._priced.reduction
        workload = next(number for number, own in enumerate(reduction.workloads) if at[0] in own)
        resources = [site.resources for own in reduction.sites for site in own[:1]]
        first = np.cumsum([0, *map(len, resources)])
        site = next(
            (
                number
                for number, own in enumerate(reduction.sites)
                for one in own
                if at[1] in one.resources
            ),
            None,
        )
        if site is None or len(reduction.sites[site]) > 1:
            return None
        equal = len(reduction.workloads[workload])
        if equal > 1 and reduction.blocks.counts[workload] != equal:
            return None
        resource = int(first[site]) + resources[site].index(at[1])
        holds = (columns.workloads == workload) & (columns.resources == resource)
        lacking: Bools = np.bincount(columns.owners, holds, len(columns)) < equal
        return lacking


def _prices(problem: Problem, context: SolveContext) -> _PricedBlocks | None:
    """Return the priced blocks; None where a problem has several priorities, or is too large."""
    if len(problem.tiers) != 1 or np.count_nonzero(~np.isnan(problem.values)) > _MOST_ASSIGNMENTS:
        return None
    reduction = reduce_to_blocks(problem, np.ones(len(problem.workloads)))
    if reduction is None or len(reduction.workloads) + len(reduction.sites) > _MOST_CLASSES:
        return None
    blocks = reduction.blocks
    found = solve_lagrangian_dual(blocks, context)
    if found.items is None:
        return None
    _, prices, _ = generate_columns(blocks, found.items, found.prices, found.pool, context)
    pricing = price_blocks(blocks, found.items, prices)
    return _PricedBlocks(reduction, prices, pricing)


def _with_one_of(blocks: BlockProblem, workload: int) -> LinkingRows:
    """Return the linking rows with one more: the workload has at least one assignment."""
    rows, resources = blocks.linking, np.arange(len(blocks.resource_sites))
    return rows.with_row(
        "the workload runs",
        -1.0,
        np.full(len(resources), workload),
        resources,
        np.full(len(resources), -1.0),
    )


def _all_but(problem: Problem, assignment: Assignment) -> Bools:
    usable: Bools = ~np.isnan(problem.values)
    at = problem.indexes(assignment)
    if at is not None:
        usable[at] = False
    return usable
