"""Binding limits, and the dual price of one more unit of each.

A dual price is the derivative of the optimum by the right-hand side of a row, in the linear
relaxation: the enforced policies stay, and workloads may run in parts. Workloads are whole, so one
more unit can bring less, and several units can bring more.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Decision
from optimizer.explain.solver_ports import LinearSolver
from optimizer.model.problem import Problem
from optimizer.model.rules import COUPLING_RULES, LOCAL_RULES, Row
from optimizer.wire.explanation import BindingLimit

_FULL = 1e-6
"""Relative slack below which a row is binding."""

_ZERO = 1e-7
"""Objective units that a higher priority may lose: solvers are inexact."""

_HIDDEN = ("supplied", "once_per_cluster", "replicas", "one_policy_per_pool")
"""Rules that are always binding, or that have no unit to buy."""


def binding_limits(
    problem: Problem, decision: Decision, linear: LinearSolver
) -> tuple[BindingLimit, ...]:
    """Return every limit that a decision uses up, with its dual price by priority."""
    part = _with_chosen_policies(problem, decision)
    rows = [(rule.__name__, row) for rule in (*LOCAL_RULES, *COUPLING_RULES) for row in rule(part)]
    chosen = _chosen(part, decision)
    prices = _prices(part, [row for _, row in rows], linear)
    return tuple(_binding(part, rows, chosen, prices))


def _with_chosen_policies(problem: Problem, decision: Decision) -> Problem:
    policies = np.zeros(len(problem.policies), dtype=np.bool_)
    policies[[problem.policy_index[item] for item in decision.policies]] = True
    return problem.restricted(~np.isnan(problem.values), policies)


def _chosen(problem: Problem, decision: Decision) -> Floats:
    wanted = {*decision.policies, *decision.assignments}
    return np.array([float(item in wanted) for item in problem.variables])


def _prices(
    problem: Problem, rows: Sequence[Row], linear: LinearSolver
) -> dict[int, Floats] | None:
    """Return the duals of the rows by priority; higher priorities keep the value that they have."""
    found, held = dict[int, Floats](), list(rows)
    enforced = Row(
        "policies stay",
        np.arange(len(problem.policies)),
        np.full(len(problem.policies), -1.0),
        -float(len(problem.policies)),
    )
    held.append(enforced)
    for tier, priority in enumerate(problem.tiers):
        weights = problem.weights(tier)
        answer = linear(weights, held, True)
        if answer.status != "Optimal":
            return None
        found[priority] = answer.prices[: len(rows)]
        columns = np.nonzero(weights)[0]
        value = float(weights @ answer.values)
        held.append(Row("keeps its value", columns, -weights[columns], _ZERO - value))
    return found


def _binding(
    problem: Problem,
    rows: Sequence[tuple[str, Row]],
    chosen: Floats,
    prices: dict[int, Floats] | None,
) -> Iterator[BindingLimit]:
    local = {rule.__name__ for rule in LOCAL_RULES}
    for index, (rule, row) in enumerate(rows):
        taken = chosen[row.columns] * row.coefficients
        used = float(taken[row.coefficients > 0].sum())
        full = row.limit - float(taken.sum()) <= _FULL * max(1.0, abs(row.limit))
        if rule in _HIDDEN or not full or not used:
            continue
        cluster = problem.column_cluster[row.columns[0]] if rule in local else None
        yield BindingLimit(
            cluster="" if cluster is None else problem.clusters[int(cluster)],
            limit=row.says.removesuffix(" suffices"),
            used=round(used, 9),
            price=None
            if prices is None
            else {
                priority: round(float(found[index]), 6) + 0.0 for priority, found in prices.items()
            },
        )
