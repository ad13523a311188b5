"""A state between start and goal: the variables that are set, and what every row has left.

As in `model.allocation`, row i has left limit_i - sum_j a_ij x_j over the variables that are set;
here its limit includes its tolerance. A state is feasible where nothing left is below 0. All rules
are rows here, capacity too, because a move can change several variables at once, and what is
supplied while it is made is one more column.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.allocation import RowMatrix
from optimizer.model.parameters import ProblemPolicy
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, Row
from optimizer.transition.policy_replacement import ReplacementLookup, gpu_kinds, nothing_stays

VariableSet = frozenset[int]
"""The variables that are set, by number."""

Move = tuple[int, ...]
"""Variables that change at once: an assignment alone, or a policy and the one that it replaces."""


class TransitionProblem:
    """The moves from a start to a goal, and the rows that hold throughout.

    `needed` [workloads]: on how many clusters each workload can run without interruption, which is
    the smaller of its counts at start and goal. `policy_changes`: moves that enforce, release or
    replace a policy. `between`: for each policy that replaces another, the number of a variable
    that supplies what stays during the replacement. It comes after all other variables and is in no
    state.
    """

    def __init__(
        self,
        problem: Problem,
        start: Decision,
        goal: Decision,
        replacements: ReplacementLookup = nothing_stays,
    ) -> None:
        self.problem = problem
        self.start, self.goal = (_columns(problem, decision) for decision in (start, goal))
        self.workload = [-1] * len(problem.policies) + problem.assignments.workload.tolist()
        self.needed = [
            min(both) for both in zip(*map(self.counts, (self.start, self.goal)), strict=True)
        ]
        self.policy_changes = self._changes()
        replaced = [change for change in self.policy_changes if len(change) > 1]
        self.between = {new: len(self.workload) + at for at, (_, new) in enumerate(replaced)}
        self.rows = _rows(
            problem, [_between(problem, old, new, replacements) for old, new in replaced]
        )
        self.workload += [-1] * len(replaced)
        self.matrix = RowMatrix(self.rows, len(self.workload))
        self.limits = self.matrix.limits + np.array([row.tolerance for row in self.rows])

    def counts(self, state: Iterable[int]) -> list[int]:
        """Return on how many clusters each workload runs."""
        found = [0] * len(self.problem.workloads)
        for column in state:
            if self.workload[column] >= 0:
                found[self.workload[column]] += 1
        return found

    def _changes(self) -> tuple[Move, ...]:
        policies = self.problem.policies
        old = {policies[i][:2]: i for i in sorted(self.start) if self.workload[i] < 0}
        new = {policies[i][:2]: i for i in sorted(self.goal) if self.workload[i] < 0}
        pools = sorted({*old, *new})
        pairs = ((old.get(pool), new.get(pool)) for pool in pools)
        return tuple(
            tuple(item for item in pair if item is not None) for pair in pairs if pair[0] != pair[1]
        )


class TransitionState:
    """A feasible state that moves change; it tells which moves keep it feasible.

    `row_residual` [rows]: what each row has left. `running` [workloads]: their clusters.
    """

    def __init__(self, moves: TransitionProblem, state: Iterable[int]) -> None:
        self.moves = moves
        self.variables: set[int] = set()
        self.row_residual = moves.limits.copy()
        self.running = [0] * len(moves.problem.workloads)
        self.make(tuple(state))

    def is_feasible(self, move: Iterable[int]) -> bool:
        """Tell whether all rows hold during and after a move."""
        return not self.violated_rows(move)

    def violated_rows(self, move: Iterable[int]) -> list[int]:
        """Return the rows that a move would violate, during or after it."""
        rows, amounts = self.peak_change(move)
        return [int(row) for row in rows[amounts > self.row_residual[rows]]]

    def make(self, move: Iterable[int]) -> None:
        """Make a move: set the variables that are not set, and unset the others."""
        columns = tuple(move)
        rows, amounts = self.change(columns)
        self.row_residual[rows] -= amounts
        for column in columns:
            if self.moves.workload[column] >= 0:
                self.running[self.moves.workload[column]] += -1 if column in self.variables else 1
        self.variables.symmetric_difference_update(columns)

    def peak_change(self, move: Iterable[int]) -> tuple[Ints, Floats]:
        """Return rows and the most that a move takes of what they have left, during or after it.

        While a policy replaces another, only what both supply of devices that stay is supplied.
        """
        columns = tuple(move)
        between = self.moves.between
        rows, after = self.change(columns)
        if between.keys().isdisjoint(columns):
            return rows, after
        others, amid = self.change([between.get(column, column) for column in columns])
        every = np.union1d(rows, others)
        most = np.zeros((2, len(every)))
        most[0, np.searchsorted(every, rows)] = after
        most[1, np.searchsorted(every, others)] = amid
        return every, most.max(axis=0)

    def change(self, move: Iterable[int]) -> tuple[Ints, Floats]:
        """Return rows and what a finished move takes of what they have left."""
        return self.moves.matrix.total(
            [(column, -1 if column in self.variables else 1) for column in move]
        )

    def covered_without(self, column: int) -> bool:
        """Tell whether a workload still runs on as many clusters as needed after this one stops."""
        workload = self.moves.workload[column]
        return bool(self.running[workload] > self.moves.needed[workload])

    def uncovered(self) -> list[int]:
        """Return the workloads that run on fewer clusters than needed."""
        pairs = zip(self.running, self.moves.needed, strict=True)
        return [workload for workload, (running, needed) in enumerate(pairs) if running < needed]


def _columns(problem: Problem, decision: Decision) -> VariableSet:
    policies, pairs = problem.numbered(decision)
    return frozenset((*policies, *(problem.column(*pair) for pair in pairs)))


def _between(
    problem: Problem, old: int, new: int, replacements: ReplacementLookup
) -> ProblemPolicy:
    """Return a policy that supplies what stays while one policy of a pool replaces another."""
    replacement = replacements(problem.enforcement(old), problem.enforcement(new))
    before, after = (dict(problem.policies[item].supplies) for item in (old, new))
    gpus, resources = (
        gpu_kinds(problem.resources[resource] for resource in (*before, *after)),
        problem.resources,
    )
    supplies = tuple(
        (
            resource,
            replacement.kept(
                resources[resource],
                amount,
                after[resource],
                of_gpus=resources[resource].kind in gpus,
            ),
        )
        for resource, amount in before.items()
        if resource in after
    )
    return problem.policies[new]._replace(name="", supplies=supplies, current=False, value=0.0)


def _rows(problem: Problem, between: Sequence[ProblemPolicy]) -> list[Row]:
    """Return the rows of a problem with more policies, which are numbered after all variables."""
    first, more, last = len(problem.policies), len(between), len(problem.assignments.workload)
    limits = (
        replace(item, policies=np.concatenate([item.policies, np.zeros(more)]))
        for item in problem.limits
    )
    wide = replace(problem, policies=(*problem.policies, *between), limits=tuple(limits))
    own, theirs = np.arange(first), np.arange(first, first + last)
    number = np.concatenate([own, first + last + np.arange(more), theirs])
    return [replace(row, columns=number[row.columns]) for rule in RULES for row in rule(wide)]
