"""What is lost without a place: first by small problems that bound it, then by whole ones.

A decision without the place bounds the margin from above. It is sought where the policies stay and
the workload's best other devices change hands. One that loses nothing settles the margin, since
nothing is better than the best; else the problem is solved without the place.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optimizer.explanation.forced import lost, outcome, without_places
from optimizer.explanation.ports import Resolve
from optimizer.explanation.results import Lost
from optimizer.problem import Bools, Problem
from optimizer.rules import violations
from optimizer.solution import Decision, Place, Solution

_NEAR = 8
"""Other devices of a workload whose places change hands in a first, small problem."""


class Margin(NamedTuple):
    """What is lost in a decision without a place; exact: no other loses less."""

    place: int
    lost: Lost
    exact: bool
    decision: Decision


def margins(problem: Problem, solution: Solution, resolve: Resolve) -> Iterator[Margin]:
    """Yield margins of an optimal solution's places by number: bounds, then what is exact.

    A place is yielded again where more is known.
    """
    taken = solution.decision.places
    repair = _Repair(problem, solution.decision)
    open_places = list[int]()
    for number, place in enumerate(taken):
        found = _settled(problem, solution, number, repair.without(place, resolve))
        if found is None or not found.exact:
            open_places.append(number)
        if found is not None:
            yield found
    for number in open_places:
        without = without_places(problem, [taken[number]])
        best = outcome(problem, solution.decision, without, resolve)
        if best.lost is not None:
            yield Margin(number, best.lost, exact=True, decision=best.decision)


def _settled(problem: Problem, before: Solution, number: int, repaired: Solution) -> Margin | None:
    """Return what a decision without a place tells of its margin; None where there is none."""
    if repaired.status == "NotSolved" or violations(problem, repaired.decision):
        return None
    found = lost(problem, before.decision, repaired.decision)
    exact = not found.total and not any(found.by_priority.values())
    return Margin(number, found, exact, repaired.decision)


class _Repair:
    """Decisions without a place in which the policies stay, and most workloads too."""

    def __init__(self, problem: Problem, decision: Decision) -> None:
        chosen = [problem.option_index[item] for item in decision.choices]
        there = np.array(problem.base > 0)
        for option in chosen:
            there[[slot for slot, _ in problem.options[option].supplies]] = True
        taken = [at for item in decision.places if (at := problem.indexes(item)) is not None]
        self._problem = problem
        self._options = np.isin(np.arange(len(problem.options)), chosen)
        self._usable = ~np.isnan(problem.values) & there
        self._task = np.array([task for task, _ in taken], dtype=np.int64)
        self._slot = np.array([slot for _, slot in taken], dtype=np.int64)
        self._idle = np.setdiff1d(np.arange(len(problem.tasks)), self._task)

    def without(self, place: Place, resolve: Resolve) -> Solution:
        """Return the best solution without a place near the one that has it."""
        found = self._problem.indexes(place)
        if found is None:
            raise KeyError(place)
        free = self._free(*found)
        return resolve(self._problem.restricted(free, self._options))

    def _free(self, task: int, slot: int) -> Bools:
        """Return the places of a small problem: what runs on few slots may change hands."""
        values = np.where(self._usable[task], self._problem.values[task], -np.inf)
        best = np.argsort(-values, kind="stable")[:_NEAR]
        near = np.union1d(best[np.isfinite(values[best])], [slot])
        free = np.zeros_like(self._usable)
        moving = np.isin(self._slot, near)
        movers = np.union1d(np.concatenate([self._task[moving], self._idle]), [task])
        corner = np.ix_(movers, near)
        free[corner] = self._usable[corner]
        free[self._task, self._slot] = True
        free[task, slot] = False
        return free
