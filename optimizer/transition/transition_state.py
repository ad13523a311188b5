"""A state on its way: what is set, and how much of every rule's rows that takes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.domain.solution import Decision, Variable
from optimizer.model.problem import Problem, ProblemPolicy
from optimizer.model.rules import RULES, TOLERANCE, Row
from optimizer.transition.policy_replacement import ReplacementLookup, gpu_kinds, nothing_stays

VariableSet = frozenset[int]
"""The variables that are set, by number."""

Move = tuple[int, ...]
"""Variables that change at once: a place alone, or a policy and the one that it replaces."""


class TransitionProblem:
    """What changes from a start to a goal, both of which a problem holds.

    `needed` [tasks]: on how many clusters each task can run all the time. `policy_changes`: a
    policy goes, comes, or replaces another. `between`: by the policy that replaces another, one
    that supplies what stays meanwhile, numbered after all variables; it is never in a state.
    """

    def __init__(
        self,
        problem: Problem,
        start: Decision,
        goal: Decision,
        swaps: ReplacementLookup = nothing_stays,
    ) -> None:
        self.problem = problem
        number = {variable: index for index, variable in enumerate(problem.variables)}
        self.start, self.goal = (
            frozenset(number[item] for item in _variables(decision)) for decision in (start, goal)
        )
        self.task = [-1] * len(problem.policies) + problem.assignments.workload.tolist()
        self.needed = [
            min(both) for both in zip(*map(self.counts, (self.start, self.goal)), strict=True)
        ]
        self.policy_changes = self._changes()
        replaced = [change for change in self.policy_changes if len(change) > 1]
        self.between = {new: len(self.task) + at for at, (_, new) in enumerate(replaced)}
        self.rows = _rows(problem, [_between(problem, old, new, swaps) for old, new in replaced])
        self.limits = np.array([_limit(row) for row in self.rows])
        self.task += [-1] * len(replaced)
        self.terms = _terms(self.rows, len(self.task))

    def counts(self, state: Iterable[int]) -> list[int]:
        """Return on how many clusters each task runs."""
        found = [0] * len(self.problem.workloads)
        for column in state:
            if self.task[column] >= 0:
                found[self.task[column]] += 1
        return found

    def _changes(self) -> tuple[Move, ...]:
        options = self.problem.policies
        old = {_pool(options[i]): i for i in sorted(self.start) if self.task[i] < 0}
        new = {_pool(options[i]): i for i in sorted(self.goal) if self.task[i] < 0}
        pools = sorted({*old, *new})
        pairs = ((old.get(pool), new.get(pool)) for pool in pools)
        return tuple(
            tuple(item for item in pair if item is not None) for pair in pairs if pair[0] != pair[1]
        )


class TransitionState:
    """A state that keeps all rows; changes it and tells which changes keep them too.

    `running` [tasks]: on how many clusters each task runs.
    """

    def __init__(self, moves: TransitionProblem, state: Iterable[int]) -> None:
        self.moves = moves
        self.state: set[int] = set()
        self.taken = np.zeros(len(moves.rows))
        self.running = [0] * len(moves.problem.workloads)
        self.flip(tuple(state))

    def can(self, flips: Iterable[int]) -> bool:
        """Tell whether all rows hold while and after variables change together."""
        return not self.broken(flips)

    def broken(self, flips: Iterable[int]) -> list[int]:
        """Return the rows that would not hold while or after variables change together."""
        rows, amounts = self.peak(flips)
        return [int(row) for row in rows[self.taken[rows] + amounts > self.moves.limits[rows]]]

    def flip(self, flips: Iterable[int]) -> None:
        """Change variables."""
        columns = tuple(flips)
        rows, amounts = self.delta(columns)
        self.taken[rows] += amounts
        for column in columns:
            if self.moves.task[column] >= 0:
                self.running[self.moves.task[column]] += -1 if column in self.state else 1
        self.state.symmetric_difference_update(columns)

    def peak(self, flips: Iterable[int]) -> tuple[Ints, Floats]:
        """Return the most that a change adds to which rows, while it is made or after.

        A policy that replaces another comes last: only what stays is supplied until then.
        """
        columns = tuple(flips)
        between = self.moves.between
        rows, after = self.delta(columns)
        if between.keys().isdisjoint(columns):
            return rows, after
        others, amid = self.delta([between.get(column, column) for column in columns])
        every = np.union1d(rows, others)
        most = np.zeros((2, len(every)))
        most[0, np.searchsorted(every, rows)] = after
        most[1, np.searchsorted(every, others)] = amid
        return every, most.max(axis=0)

    def delta(self, flips: Iterable[int]) -> tuple[Ints, Floats]:
        """Return what a change adds to which rows once it is made."""
        parts = [(column, self.moves.terms[column]) for column in flips]
        if not parts:
            return np.empty(0, dtype=np.int64), np.empty(0)
        rows = np.concatenate([rows for _, (rows, _) in parts])
        signed = [-a if column in self.state else a for column, (_, a) in parts]
        distinct, inverse = np.unique(rows, return_inverse=True)
        amounts = np.bincount(inverse, weights=np.concatenate(signed), minlength=len(distinct))
        return distinct, amounts.astype(np.float64)

    def covered_without(self, column: int) -> bool:
        """Tell whether a task still runs as often as needed when it stops somewhere."""
        task = self.moves.task[column]
        return bool(self.running[task] > self.moves.needed[task])

    def uncovered(self) -> list[int]:
        """Return the tasks that run on fewer clusters than needed."""
        pairs = zip(self.running, self.moves.needed, strict=True)
        return [task for task, (running, needed) in enumerate(pairs) if running < needed]


def _variables(decision: Decision) -> tuple[Variable, ...]:
    return (*decision.policies, *decision.assignments)


def _pool(option: ProblemPolicy) -> tuple[int, str]:
    return option.cluster, option.pool


def _between(problem: Problem, old: int, new: int, swaps: ReplacementLookup) -> ProblemPolicy:
    """Return what stands for a pool's policy while one replaces another."""
    swap = swaps(problem.enforcement(old), problem.enforcement(new))
    before, after = (dict(problem.policies[item].supplies) for item in (old, new))
    gpus, slots = (
        gpu_kinds(problem.resources[slot] for slot in (*before, *after)),
        problem.resources,
    )
    supplies = tuple(
        (slot, swap.kept(slots[slot], amount, after[slot], of_gpus=slots[slot].kind in gpus))
        for slot, amount in before.items()
        if slot in after
    )
    return problem.policies[new]._replace(name="", supplies=supplies, current=False, value=0.0)


def _rows(problem: Problem, between: Sequence[ProblemPolicy]) -> list[Row]:
    """Return the rows of a problem with more options, which are numbered after all variables."""
    first, more, last = len(problem.policies), len(between), len(problem.assignments.workload)
    limits = (
        replace(item, policies=np.concatenate([item.policies, np.zeros(more)]))
        for item in problem.limits
    )
    wide = replace(problem, policies=(*problem.policies, *between), limits=tuple(limits))
    own, theirs = np.arange(first), np.arange(first, first + last)
    number = np.concatenate([own, first + last + np.arange(more), theirs])
    return [replace(row, columns=number[row.columns]) for rule in RULES for row in rule(wide)]


def _limit(row: Row) -> float:
    scale = max(1.0, float(np.abs(row.coefficients).max(initial=0.0)))
    return row.limit + TOLERANCE * scale


def _terms(rows: Sequence[Row], columns: int) -> list[tuple[Ints, Floats]]:
    """Return the rows and coefficients of each column."""
    every = np.concatenate([row.columns for row in rows] or [np.empty(0, dtype=np.int64)])
    sizes = [len(row.columns) for row in rows]
    numbers = np.repeat(np.arange(len(rows)), sizes)
    amounts = np.concatenate([row.coefficients for row in rows] or [np.empty(0)])
    order = np.argsort(every, kind="stable")
    ends = np.searchsorted(every[order], np.arange(columns + 1))
    return [
        (numbers[order[first:last]], amounts[order[first:last]])
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
