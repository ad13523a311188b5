"""Trade-offs: dual prices of binding limits, and Pareto sets of several scores.

A dual price is the derivative of the optimum by the right-hand side of a row, in the linear
relaxation: the enforced policies stay, and workloads may run in parts. Workloads are whole, so one
more unit can bring less, and several units can bring more.

In a Pareto set nothing betters a solution in one score without being worse in another. The first
points are the optima of each score. Each further point must exceed every known point in some score
by a step, which binary variables express (J. Sylva and A. Crema, A method for finding the set of
non-dominated vectors for multiple objective integer linear programs, European Journal of
Operational Research 158, 2004). The set is complete when no such point exists.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import Fleet, Objective
from optimizer.domain.solution import Decision
from optimizer.explain.case import BudgetExceeded, LinearSolver
from optimizer.model.decision_comparison import tie_weights, trimmed
from optimizer.model.problem import Problem
from optimizer.model.rules import COUPLING_RULES, LOCAL_RULES, RULES, Row
from optimizer.model.wire_values import assignment_value, policy_value
from optimizer.wire.explanation import BindingLimit, ParetoPoint, ParetoSet

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
    taken = {*decision.policies, *decision.assignments}
    return np.array([float(item in taken) for item in problem.variables])


def _prices(
    problem: Problem, rows: Sequence[Row], linear: LinearSolver
) -> dict[int, Floats] | None:
    """Return the duals of the rows by priority; higher priorities keep the value that they have."""
    enforced = (np.arange(problem.size) < len(problem.policies)).astype(np.float64)
    found, held = dict[int, Floats](), [*rows, _at_least(enforced, enforced.sum())]
    for tier, priority in enumerate(problem.tiers):
        weights = problem.weights(tier)
        answer = linear(weights, held, True)
        if answer.status != "Optimal":
            return None
        found[priority] = answer.duals[: len(rows)]
        held.append(_at_least(weights, float(weights @ answer.values) - _ZERO))
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


FRACTIONAL_STEP = 1e-3
"""The step where scores are not whole numbers, relative to the largest score."""

_HALF = 0.5
"""Tells a binary variable that is set from one that is not."""

_SAME = 1e-6
"""Relative: values of a score that differ by less are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class MultiObjectiveProblem:
    """A problem with several scores: `worth` [scores, variables] of each variable in each.

    `raw`: the same as published, so before an objective normalises it. `steps` [scores]: points
    that are closer than this count as one.
    """

    problem: Problem
    names: tuple[str, ...]
    worth: Floats
    raw: Floats
    steps: Floats

    @property
    def together(self) -> Floats:
        """The sum of all scores of each variable, each score divided by its total."""
        scale = np.maximum(np.abs(self.worth).sum(axis=1), 1.0)
        return np.asarray((self.worth / scale[:, np.newaxis]).sum(axis=0))

    def least(self, score: int) -> float:
        """Return a lower bound of a score over all decisions."""
        return float(np.minimum(self.worth[score], 0.0).sum())

    def values(self, columns: Floats) -> Floats:
        """Return the values of chosen variables, by score."""
        return np.asarray(self.worth @ columns[: self.worth.shape[1]])


def multi_objective(fleet: Fleet, problem: Problem, names: Sequence[str]) -> MultiObjectiveProblem:
    """Return the problem over the candidate assignments that have all of the named scores."""
    tables = [_table(fleet, problem, name) for name in names]
    usable = ~np.isnan(problem.values) & ~np.isnan(np.sum(tables, axis=0))
    part = problem.restricted(usable, np.ones(len(problem.policies), dtype=np.bool_))
    candidates = part.assignments
    raw = np.zeros((len(names), len(part.policies) + len(candidates.workload)))
    worth = raw.copy()
    counted = {item.score: replace(item, weight=1.0) for item in fleet.objectives}
    for row, name in enumerate(names):
        table = _table(fleet, part, name)[candidates.workload, candidates.resource]
        raw[row, len(part.policies) :] = table
        worth[row, len(part.policies) :] = counted.get(name, Objective(name)).values(table)
    whole = np.equal(np.rint(worth), worth).all(axis=1)
    largest = np.abs(worth).max(axis=1, initial=0.0)
    return MultiObjectiveProblem(
        part,
        tuple(names),
        worth,
        raw,
        np.where(whole, 1.0, np.maximum(FRACTIONAL_STEP * largest, 1e-9)),
    )


def pareto_set(given: MultiObjectiveProblem, linear: LinearSolver, *, most: int) -> ParetoSet:
    """Return at most `most` points, the best in the first score first."""
    rows = [row for rule in RULES for row in rule(given.problem)]
    found, complete = list[Floats](), False
    why = f"no more than {most} points are looked for"
    try:
        for point in _points(given, rows, found, linear):
            found.append(point)
            if len(found) >= most:
                break
        else:
            complete, why = True, "no other point exists"
    except BudgetExceeded:
        why = "the time did not allow more points"
    points = sorted(
        (_point(given, item) for item in _untied(given, rows, found, linear)),
        key=lambda point: [-point.values[name] for name in given.names],
    )
    return ParetoSet(points=tuple(points), complete=complete, message=why)


def _points(
    given: MultiObjectiveProblem, rows: Sequence[Row], found: Sequence[Floats], linear: LinearSolver
) -> Iterator[Floats]:
    """Yield the optimum of each score, then what none of the points `found` so far dominates."""
    for score in range(len(given.names)):
        point = _best(given, rows, score, linear)
        if not _known(given, found, point):
            yield point
    while (further := _further(given, rows, found, linear)) is not None:
        yield further


def _optimum(weights: Floats, rows: Sequence[Row], linear: LinearSolver) -> Floats:
    """Return the values of the optimum; raise BudgetExceeded where it was not found."""
    found = linear(weights, rows, False)
    if found.status != "Optimal":
        raise BudgetExceeded
    return found.values


def _table(fleet: Fleet, problem: Problem, name: str) -> Floats:
    """Return a score [workloads, resources] as it was published."""
    held = fleet.scores[name]
    values = np.full(problem.values.shape, np.nan)
    for workload, resource in np.argwhere(~np.isnan(problem.values)).tolist():
        cluster, _, device = problem.resources[resource]
        score = held.get((problem.clusters[cluster], problem.workloads[workload].app, device))
        if score is not None:
            values[workload, resource] = score
    return values


def _best(
    given: MultiObjectiveProblem, rows: Sequence[Row], score: int, linear: LinearSolver
) -> Floats:
    """Return the optimum of a score, and among equals the best in all scores."""
    value = float(given.values(_optimum(given.worth[score], rows, linear))[score])
    kept = _at_least(given.worth[score], value - float(given.steps[score]) / 2)
    return _optimum(given.together, [*rows, kept], linear)


def _further(
    given: MultiObjectiveProblem, rows: Sequence[Row], found: Sequence[Floats], linear: LinearSolver
) -> Floats | None:
    """Return a point that exceeds each known point in some score; None where there is none.

    One binary variable per known point and score says in which. The last variable gives up; its
    weight is so low that it is set only where no such point exists.
    """
    scores, columns = given.worth.shape
    none = columns + scores * len(found)
    weights = np.zeros(none + 1)
    weights[:columns] = given.together
    weights[none] = -2.0 * scores
    better = []
    for index, point in enumerate(found):
        first = columns + scores * index
        switches = np.array([*range(first, first + scores), none])
        better.append(Row("one of", switches, np.full(len(switches), -1.0), -1.0))
        values = given.values(point)
        better += [
            _better(given, score, float(values[score]), first + score) for score in range(scores)
        ]
    values = _optimum(weights, [*rows, *better], linear)
    return values[:columns] if values[none] < _HALF else None


def _better(given: MultiObjectiveProblem, score: int, value: float, switch: int) -> Row:
    """Return the row: where the variable `switch` is set, the score exceeds a value by a step."""
    least = given.least(score)
    columns = np.nonzero(given.worth[score])[0]
    rise = value + float(given.steps[score]) - least
    coefficients = np.append(-given.worth[score][columns], rise)
    return Row("better", np.append(columns, switch), coefficients, -least)


def _at_least(weights: Floats, value: float) -> Row:
    columns = np.nonzero(weights)[0]
    return Row("at least", columns, -weights[columns], -value)


def _known(given: MultiObjectiveProblem, found: Sequence[Floats], point: Floats) -> bool:
    values = given.values(point)
    near = [np.abs(given.values(other) - values) < given.steps for other in found]
    return any(bool(item.all()) for item in near)


def _untied(
    given: MultiObjectiveProblem, rows: Sequence[Row], found: Sequence[Floats], linear: LinearSolver
) -> list[Floats]:
    """Return each point as the decision that tie-breaking prefers, where time allows."""
    weights = tie_weights(given.problem)
    if weights is None:
        return list(found)
    made = list(found)
    with contextlib.suppress(BudgetExceeded):
        for number, point in enumerate(found):
            values = given.values(point)
            least = values - _SAME * np.maximum(1.0, np.abs(values))
            kept = map(_at_least, given.worth, least.tolist())
            made[number] = _optimum(weights, [*rows, *kept], linear)
    return made


def _point(given: MultiObjectiveProblem, columns: Floats) -> ParetoPoint:
    chosen = np.nonzero(columns[: given.worth.shape[1]] > _HALF)[0]
    decision = trimmed(given.problem, given.problem.decision(chosen.tolist()))
    values = np.round(given.raw @ columns[: given.raw.shape[1]], 6).tolist()
    return ParetoPoint(
        values=dict(zip(given.names, values, strict=True)),
        policies=tuple(map(policy_value, decision.policies)),
        places=tuple(map(assignment_value, decision.assignments)),
    )
