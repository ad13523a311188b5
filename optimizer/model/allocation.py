"""A partial decision, and what every resource and row has left: the state of constructive search.

Build `Allocation(problem)` or `Allocation(problem, decision)`; with `linking_rows`, `fits` checks
all rules. Query it with `fits`, or with `has_capacity`, which checks only resources and is cheaper.
Change it with `enforce`, `release`, `assign` and `unassign`; the time of each is proportional to
the entries that it changes. `residual` is an array for vectorised choices, `decision()` the result.
Changes are not checked, so a search may pass through infeasible states: check the result with
`rules.violations`.

For resource r, with x_p = 1 where policy p is enforced and y_wr = 1 where workload w runs on r:

    residual_r = base_r + sum_p supply_pr x_p - sum_w demand_wr y_wr
"""

from collections.abc import Iterable, Sequence

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.model.rules import Row


class RowMatrix:
    """Rows over numbered variables, in compressed sparse column form; `limits` [rows]."""

    def __init__(self, rows: Sequence[Row], columns: int) -> None:
        every = np.concatenate([np.empty(0, np.int64), *(row.columns for row in rows)])
        order = np.argsort(every, kind="stable")
        numbers = np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows])
        amounts = np.concatenate([np.empty(0), *(row.coefficients for row in rows)])
        self._columns, self._rows, self._amounts = every[order], numbers[order], amounts[order]
        self._starts: list[int] = np.searchsorted(self._columns, np.arange(columns + 1)).tolist()
        self.limits: Floats = np.array([row.limit for row in rows], np.float64)

    def column(self, number: int) -> tuple[Ints, Floats]:
        """Return the rows in which a variable has an entry, and its coefficients there."""
        own = slice(self._starts[number], self._starts[number + 1])
        return self._rows[own], self._amounts[own]

    def total(self, signed: Iterable[tuple[int, int]]) -> tuple[Ints, Floats]:
        """Return the rows of some variables, and the sums of sign times coefficient there."""
        parts = [(sign, *self.column(number)) for number, sign in signed]
        rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows, _ in parts)])
        amounts = np.concatenate([np.empty(0), *(sign * amounts for sign, _, amounts in parts)])
        distinct, inverse = np.unique(rows, return_inverse=True)
        return distinct, np.bincount(inverse, amounts, len(distinct)).astype(np.float64)

    def columns(self, first: int, end: int) -> tuple[Ints, Ints, Floats]:
        """Return the entries of variables from `first` up to `end`: variables, rows, amounts."""
        own = slice(self._starts[first], self._starts[end])
        return self._columns[own], self._rows[own], self._amounts[own]


EXACT = 1e-9
"""Amounts, and sums relative to them, that differ by less differ through rounding alone."""


class Allocation:
    """Enforced policies, assignments, and the residual of each resource and row.

    `residual` [resources]; `row_residual` [rows]; `policies`: the numbers of the enforced ones;
    `resources_of` [workloads] and `workloads_on` [resources]: both directions of the assignments.
    """

    def __init__(
        self, problem: Problem, decision: Decision | None = None, rows: Sequence[Row] = ()
    ) -> None:
        self.problem = problem
        self.residual: Floats = problem.base.copy()
        self._matrix = RowMatrix(rows, len(problem.column_cluster)) if rows else None
        self.row_residual: Floats = self._matrix.limits.copy() if self._matrix else np.zeros(0)
        self.policies: set[int] = set()
        self.resources_of: list[list[int]] = [[] for _ in problem.workloads]
        self.workloads_on: list[list[int]] = [[] for _ in problem.resources]
        self._sources: Ints = (problem.base > 0).astype(np.int64)
        policies, pairs = problem.numbered(decision or Decision())
        for policy in policies:
            self.enforce(policy)
        for pair in pairs:
            self.assign(*pair)

    @property
    def exists(self) -> Bools:
        """Whether each resource has a base or is supplied by an enforced policy."""
        return self._sources > 0

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The assignments as (workload, resource)."""
        return [(workload, at) for workload, own in enumerate(self.resources_of) for at in own]

    def enforce(self, policy: int) -> None:
        """Enforce a policy: its resources gain what it supplies."""
        self._change_policy(policy, 1)
        self.policies.add(policy)

    def release(self, policy: int) -> None:
        """Stop enforcing a policy."""
        self._change_policy(policy, -1)
        self.policies.remove(policy)

    def assign(self, workload: int, resource: int) -> None:
        """Run a workload on a resource."""
        self._change_assignment(workload, resource, 1)
        self.resources_of[workload].append(resource)
        self.workloads_on[resource].append(workload)

    def unassign(self, workload: int, resource: int) -> None:
        """Stop a workload on a resource."""
        self._change_assignment(workload, resource, -1)
        self.resources_of[workload].remove(resource)
        self.workloads_on[resource].remove(workload)

    def has_capacity(self, workload: int, resource: int) -> bool:
        """Tell whether the resource exists and every resource that is taken has enough left."""
        return bool(self._sources[resource] > 0) and all(
            amount <= self.residual[at] + EXACT * max(1.0, amount)
            for at, amount in self.problem.demand_of(workload, resource)
        )

    def fits(self, workload: int, resource: int) -> bool:
        """Tell whether one more assignment keeps every rule."""
        at, had = self.problem.resource_cluster, self.resources_of[workload]
        return (
            not np.isnan(self.problem.values[workload, resource])
            and len(had) < self.problem.workloads[workload].replicas
            and at[resource] not in at[had]
            and self.has_capacity(workload, resource)
            and self.allows_assignment(workload, resource)
        )

    def allows_policy(self, policy: int) -> bool:
        """Tell whether no row is violated once a policy is enforced."""
        return self._matrix is None or self._keeps_rows(self._matrix, policy)

    def allows_assignment(self, workload: int, resource: int) -> bool:
        """Tell whether no row is violated once an assignment is made."""
        # Without rows nothing asks for the variable's number: numbering those of 1,000 clusters by
        # 5,000 workloads takes 430 MiB.
        return self._matrix is None or self._keeps_rows(
            self._matrix, self.problem.column(workload, resource)
        )

    def allows_absence(self, workload: int, resource: int) -> bool:
        """Tell whether no row is violated that an assignment which is not made would relax."""
        if self._matrix is None:
            return True
        rows, amounts = self._matrix.column(self.problem.column(workload, resource))
        short = self.row_residual[rows] < -EXACT * np.maximum(1.0, -amounts)
        return not ((amounts < 0) & short).any()

    def violating(self, workload: int) -> Ints:
        """Return the resources on which one more assignment of a workload violates a row."""
        if self._matrix is None:
            return np.empty(0, np.int64)
        first, members = len(self.problem.policies), self.problem.assignments_of(workload)
        if not len(members):
            return np.empty(0, np.int64)
        columns, rows, amounts = self._matrix.columns(first + members[0], first + members[-1] + 1)
        broken = columns[self._exceeds(rows, amounts)] - first
        return self.problem.assignments.resource[broken]

    def decision(self) -> Decision:
        """Return the decision, in the problem's order."""
        return self.problem.named(self.policies, self.pairs)

    def _keeps_rows(self, matrix: RowMatrix, column: int) -> bool:
        rows, amounts = matrix.column(column)
        return not self._exceeds(rows, amounts).any()

    def _exceeds(self, rows: Ints, amounts: Floats) -> Bools:
        least = self.row_residual[rows] + EXACT * np.maximum(1.0, amounts)
        exceeds: Bools = (amounts > 0) & (amounts > least)
        return exceeds

    def _change_policy(self, policy: int, sign: int) -> None:
        for resource, amount in self.problem.policies[policy].supplies:
            self.residual[resource] += sign * amount
            self._sources[resource] += sign
        self._change_rows(policy, sign)

    def _change_assignment(self, workload: int, resource: int, sign: int) -> None:
        for at, amount in self.problem.demand_of(workload, resource):
            self.residual[at] -= sign * amount
        if self._matrix:
            self._change_rows(self.problem.column(workload, resource), sign)

    def _change_rows(self, column: int, sign: int) -> None:
        if self._matrix:
            rows, amounts = self._matrix.column(column)
            self.row_residual[rows] -= sign * amounts
