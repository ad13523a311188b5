"""The decisions close to the best one, to choose among without solving anew.

Prices of the whole problem bound what each site's columns lose. So every decision worth at least so
much consists of few columns, which are found once (see `enumeration`), and the best decision
without a place is the best choice among those that lack it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.domain.status import Status
from optimizer.model.problem import Problem, objective
from optimizer.solve.blocks.block_problem import (
    BlockProblem,
    Flags,
    Floats,
    Ints,
    LinkingRows,
    Prices,
)
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.blocks.reduction import Reduction, reduce_to_blocks
from optimizer.solve.pricing.column_generation import generate_columns
from optimizer.solve.pricing.lagrangian_dual import SearchContext, solve_lagrangian_dual
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult, price_blocks
from optimizer.solve.pricing.restricted_master import (
    is_feasible,
    solve_master,
    solve_relaxed_master,
)
from optimizer.solve.search.block_search import search_blocks
from optimizer.solve.search.column_enumeration import all_columns_within

_MOST = 12_000  # columns that a choice is made among
_PLACES = 100_000  # up to which prices are worth what they cost
_CLASSES = 600  # sites and tasks, likewise
_WHOLE = 1e-6
_LEAST = 2e-4  # of what the optimum is worth: the first window
_WIDER = 3
_SEARCHING = 2.0  # seconds at most of a search for a decision that nothing can better
_NOTHING = Decision()


@dataclass(frozen=True, slots=True)
class _PricedBlocks:
    """The blocks of a problem with the prices of their relaxation."""

    whole: Reduction
    prices: Prices
    pricing: PricingResult


@dataclass(frozen=True, slots=True)
class _LossWindow:
    """The columns of which every decision worth `least` consists, and what each loses at least.

    A decision that has a column is worth at most the bound of the prices less what that loses.
    """

    columns: Columns
    least: float
    lost: Floats


class NearOptimalColumns:
    """The decisions of a problem of one priority that lose little against its optimum."""

    def __init__(
        self, problem: Problem, value: float, *, solver: SolverName, left: Callable[[], float]
    ) -> None:
        self._problem, self._value = problem, value
        self._solver, self._left = solver, left
        self._priced = _prices(problem, SearchContext(solver, 0.0, 0, left))
        self._having = dict[int, Solution]()
        self._windows = [] if self._priced is None else list(self._found(self._priced))

    def without(self, place: Assignment, most: float) -> Solution:
        """Return the best decision that lacks a place and loses less than `most`.

        Infeasible: there is none. NotSolved: too many would have to be looked at, or time is up.
        """
        for window in self._windows:
            worth = self._value - most + self._step
            enough = window.least <= worth
            found = self._chosen(place, window, max(window.least, worth))
            if found.status != "Infeasible" or enough:
                return found
        return self._solution("NotSolved")

    def with_workload(self, name: str) -> Solution:
        """Return the best decision that has a workload or an equal of it; NotSolved: not known."""
        if self._priced is None:
            return self._solution("NotSolved")
        whole, at = self._priced.whole, self._problem.workload_index[name]
        task = next(number for number, own in enumerate(whole.tasks) if at in own)
        if (self._problem.values[whole.tasks[task]] < 0).any():  # the columns lack such places
            return self._solution("NotSolved")
        if task not in self._having:
            blocks = replace(whole.blocks, rows=_with_one_of(whole.blocks, task))
            wide = (window for window in self._windows if (window.columns.tasks == task).any())
            found = (self._best(window.columns, blocks, window.least) for window in wide)
            self._having[task] = next(
                (item for item in found if item.status == "Optimal"), self._solution("NotSolved")
            )
        return self._having[task]

    def search_without(self, place: Assignment) -> Solution:
        """Return a good decision that lacks a place; Optimal where nothing can be better."""
        part = self._problem.restricted(
            _all_but(self._problem, place), np.ones(len(self._problem.policies), np.bool_)
        )
        whole = (
            reduce_to_blocks(part, np.ones(len(part.workloads)))
            if self._priced is not None
            else None
        )
        if whole is None:
            return self._solution("NotSolved")
        ends = self._left() - min(_SEARCHING, self._left())
        effort = SearchContext(self._solver, 0.0, 0, lambda: self._left() - ends, most=self._value)
        held = search_blocks(whole.blocks, effort).incumbent
        value = held.value(whole.blocks)
        status: Status = "Optimal" if self._value - value <= _WHOLE else "Feasible"
        return self._solution(status, whole.decision(part, held.columns, held.multiplicities))

    def _chosen(self, place: Assignment, window: _LossWindow, least: float) -> Solution:
        lacking = self._lacking(place, window.columns)
        if lacking is None or self._priced is None:
            return self._solution("NotSolved")
        lacking &= window.lost <= self._priced.pricing.bound - least + _WHOLE
        columns = window.columns.pick(np.flatnonzero(lacking))
        return self._best(columns, self._priced.whole.blocks, least)

    def _best(self, columns: Columns, blocks: BlockProblem, least: float) -> Solution:
        """Return the best choice of columns; Infeasible where it is worth less than `least`."""
        if self._priced is None:
            return self._solution("NotSolved")
        times = self._times(columns, blocks, least)
        if times is None or not is_feasible(blocks, columns, times):
            return self._solution("NotSolved")
        hit = np.flatnonzero(times)
        decision = self._priced.whole.decision(self._problem, columns.pick(hit), times[hit])
        if objective(self._problem, decision) < least - _WHOLE:
            return self._solution("Infeasible")
        return self._solution("Optimal", decision)

    def _times(self, columns: Columns, blocks: BlockProblem, least: float) -> Ints | None:
        """Return how often to take columns, none where the best is worth less than `least`.

        Their relaxation tells that mostly; None: not known, or no choice keeps the rows.
        """
        parts = solve_relaxed_master(blocks, columns, solver=self._solver, seconds=self._left())
        if parts is None:
            return None
        times = np.rint(parts[0]).astype(np.int64)
        if float(parts[0] @ columns.values(blocks)) < least - _WHOLE:
            return np.zeros(len(columns), np.int64)
        if np.abs(times - parts[0]).max(initial=0.0) <= _WHOLE:
            return times
        taken = solve_master(
            blocks,
            columns,
            solver=self._solver,
            seconds=self._left(),
            start=np.zeros(len(columns), np.int64),
            above=least - max(self._step / 2, _WHOLE),
        )
        return taken.multiplicities if taken is not None and taken.proven else None

    @property
    def _step(self) -> float:
        """Return how much better the next better decision is at least."""
        return 1.0 if self._priced is not None and self._priced.whole.blocks.whole else 0.0

    def _solution(self, status: Status, decision: Decision = _NOTHING) -> Solution:
        value = objective(self._problem, decision)
        return Solution(status, decision, value, None, 0.0, self._solver)

    def _found(self, priced: _PricedBlocks) -> Iterator[_LossWindow]:
        """Yield ever wider windows, up to so many columns as can be chosen among quickly."""
        gap, before = priced.pricing.bound - self._value, 0
        loss = max(self._step, _LEAST * abs(self._value))
        while self._left() > 0:
            columns = all_columns_within(
                priced.whole.blocks,
                priced.prices,
                priced.pricing,
                slack=gap + loss,
                limit=_MOST,
                stop=lambda: self._left() <= 0,
            )
            if columns is None or len(columns) == before:
                return
            before = len(columns)
            worth = priced.pricing.worth[priced.whole.blocks.mode_sites[columns.modes]]
            lost = worth - columns.profits(priced.whole.blocks, priced.prices)
            yield _LossWindow(columns, self._value - loss, lost)
            loss *= _WIDER

    def _lacking(self, place: Assignment, columns: Columns) -> Flags | None:
        """Return which columns a decision that lacks a place may have; None where that is not said.

        Of equal workloads any can be the one that lacks it.
        """
        at = self._problem.indexes(place)
        if self._priced is None or at is None:
            return None
        whole = self._priced.whole
        task = next(number for number, own in enumerate(whole.tasks) if at[0] in own)
        slots = [site.slots for own in whole.sites for site in own[:1]]
        first = np.cumsum([0, *map(len, slots)])
        site = next(
            (number for number, own in enumerate(whole.sites) for one in own if at[1] in one.slots),
            None,
        )
        if site is None or len(whole.sites[site]) > 1:
            return None
        equal = len(whole.tasks[task])
        if equal > 1 and whole.blocks.counts[task] != equal:
            return None
        slot = int(first[site]) + slots[site].index(at[1])
        holds = (columns.tasks == task) & (columns.slots == slot)
        lacking: Flags = np.bincount(columns.owners, holds, len(columns)) < equal
        return lacking


def _prices(problem: Problem, effort: SearchContext) -> _PricedBlocks | None:
    """Return the prices of a problem; None where it has several priorities, or is too large."""
    if len(problem.tiers) != 1 or np.count_nonzero(~np.isnan(problem.values)) > _PLACES:
        return None
    whole = reduce_to_blocks(problem, np.ones(len(problem.workloads)))
    if whole is None or len(whole.tasks) + len(whole.sites) > _CLASSES:
        return None
    blocks = whole.blocks
    found = solve_lagrangian_dual(blocks, effort)
    if found.items is None:
        return None
    _, prices, _ = generate_columns(
        blocks, found.items, found.prices, found.pool, solver=effort.solver, left=effort.left
    )
    answers = price_blocks(blocks, found.items, prices)
    return _PricedBlocks(whole, prices, answers)


def _with_one_of(blocks: BlockProblem, task: int) -> LinkingRows:
    """Return further rows of which one asks for a place of a task."""
    rows, slots = blocks.rows, np.arange(len(blocks.slot_sites))
    return replace(
        rows,
        limits=np.append(rows.limits, -1.0),
        place_rows=np.append(rows.place_rows, np.full(len(slots), len(rows.limits))),
        place_tasks=np.append(rows.place_tasks, np.full(len(slots), task)),
        place_slots=np.append(rows.place_slots, slots),
        place_coefficients=np.append(rows.place_coefficients, np.full(len(slots), -1.0)),
    )


def _all_but(problem: Problem, place: Assignment) -> Flags:
    usable: Flags = ~np.isnan(problem.values)
    at = problem.indexes(place)
    if at is not None:
        usable[at] = False
    return usable
