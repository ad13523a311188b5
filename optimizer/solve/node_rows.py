"""Lazy constraints: rows of the rule `node_fit` are stated once a decision breaks them.

A problem has such a row for each workload and cluster, each with an entry for each workload. Few of
them ever bind. So it is solved without them; those that the decision breaks are added, with those
of the same Pods on the same cluster, and it is solved again from there. Each bound holds for the
whole problem, because fewer rows allow more. If there is no time left, workloads that find no node
are left out of the last decision, those of the lowest value first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.domain.arrays import members_by_key
from optimizer.domain.solution import Decision, NodeRows, Solution, TierPrices
from optimizer.model.allocation import EXACT, Allocation
from optimizer.model.decision_comparison import better
from optimizer.model.objective import upper_bounds
from optimizer.model.problem import Problem
from optimizer.model.rules import chosen_part, linking_rows, node_fit, violations
from optimizer.solve.time_limit import is_close, with_status
from optimizer.solve.warm_start import SolvedProblem, mended, resolve

_MOST_ROUNDS = 30
"""Solves of one problem; each adds rows."""

_MOST_TRIED = 30
"""Places with room, best first, that a workload without nodes is tried on."""

_SHARE = 0.7
"""Share of the time left that a round has at most, so that there is time for another."""

_LEAST_SHARE = 0.1
"""Share of the time limit below which a round has all that is left."""


@dataclass(frozen=True, slots=True)
class RelaxedStart:
    """What a solve starts from: a decision, prices, and rows that bound a similar problem."""

    incumbent: Decision | None = None
    prices: Sequence[TierPrices] = ()
    node_rows: NodeRows = frozenset()


def broken_node_rows(problem: Problem, decision: Decision) -> NodeRows:
    """Return the workloads and clusters of which a decision breaks a row of `node_fit`."""
    part = replace(chosen_part(problem, decision)[0], node_rows=None)
    first, found = len(part.policies), set[tuple[str, str]]()
    for row in node_fit(part):
        if not row.holds(float(row.coefficients.sum())):
            # The variable of the workload comes after those of the others.
            own = int(row.columns[row.columns >= first][-1]) - first
            cluster = part.clusters[part.assignments.cluster[own]]
            found.add((part.workloads[part.assignments.workload[own]].name, cluster))
    return frozenset(found)


def fitting(problem: Problem, decision: Decision) -> Decision:
    """Return the decision without workloads that find no node, which go where they find one.

    Those of the highest value are kept.
    """
    if not problem.nodes:
        return decision
    part = replace(chosen_part(problem, decision)[0], node_rows=None)
    chosen = part.assignments
    best_first = np.lexsort((-chosen.value, part.workload_tier[chosen.workload])).tolist()
    pairs = ((int(chosen.workload[at]), int(chosen.resource[at])) for at in best_first)
    ordered = Decision(decision.policies, tuple(part.assignment(*pair) for pair in pairs))
    return _refilled(problem, mended(part, ordered, lambda: False))


def _refilled(problem: Problem, decision: Decision) -> Decision:
    """Return the decision with further workloads on what has room and nodes for them."""
    other_rules = replace(problem, node_rows=frozenset())
    found = Allocation(other_rules, decision, linking_rows(other_rules))
    there = members_by_key((item.cluster, item) for item in decision.assignments)
    best = np.fmax.reduce(problem.values, axis=1, initial=0.0)
    for workload in np.lexsort((-best, problem.workload_tier)).tolist():
        if len(found.resources_of[workload]) == problem.workloads[workload].replicas:
            continue
        row = np.nan_to_num(problem.values[workload], nan=-1.0)
        row[found.residual < problem.workloads[workload].amount - EXACT] = -1.0
        for at in np.argsort(-row, kind="stable")[:_MOST_TRIED].tolist():
            if row[at] < 0 or not found.fits(workload, at):
                continue
            new = problem.assignment(workload, at)
            own = there.setdefault(new.cluster, [])
            if not violations(problem, Decision(decision.policies, (*own, new)), [node_fit]):
                found.assign(workload, at)
                own.append(new)
    return found.decision()


def solve_with_node_rows(
    problem: Problem,
    solve: Callable[..., Solution],
    *,
    time_limit_seconds: float,
    gap: float,
    start: RelaxedStart,
    report: Callable[[Solution], None] | None,
    clock: Callable[[], float],
) -> Solution:
    """Return the solution of a problem with nodes; `solve` solves it with the rows that it has."""
    began, rows, prices = clock(), start.node_rows, start.prices
    fit = _FittingSolutions(problem, lambda: clock() - began, report)
    for turn in range(_MOST_ROUNDS):
        left = time_limit_seconds - fit.seconds()
        if turn and left <= 0:
            break
        found = solve(
            replace(problem, node_rows=rows),
            time_limit_seconds=left if left < _LEAST_SHARE * time_limit_seconds else _SHARE * left,
            incumbent=fit.best or start.incumbent,
            prices=prices,
            report=fit.report,
        )
        broken = fit.add(found)
        more = rows | _with_equal_pods(problem, broken)
        solved = all(is_close(tier.value, tier.bound, gap) for tier in found.tiers)
        if (solved and not broken) or (broken and more == rows):
            break
        rows, prices = more, found.prices or prices
    return replace(fit.solution, failure=found.failure, prices=tuple(prices), node_rows=rows)


class _FittingSolutions:
    """Makes solutions of relaxations solutions of the problem, and reports the better ones."""

    def __init__(
        self,
        problem: Problem,
        seconds: Callable[[], float],
        report: Callable[[Solution], None] | None,
    ) -> None:
        self._problem, self.seconds, self._send = problem, seconds, report
        self._limits = list(upper_bounds(problem))
        self.best: Decision | None = None
        self.solution = Solution("NotSolved", Decision(), 0.0, None, 0.0, "")

    def report(self, found: Solution) -> None:
        """Report what is better than before."""
        before = self.best
        self.add(found)
        if self._send is not None and self.best is not before:
            self._send(self.solution)

    def add(self, found: Solution) -> NodeRows:
        """Take the solution of a relaxation; return the workloads for which it has no nodes."""
        problem, bounds = self._problem, [tier.bound for tier in found.tiers]
        broken = broken_node_rows(problem, found.decision)
        if broken:
            # Later bounds hold for decisions that are as good in the first priority.
            bounds = bounds[:1]
        self._limits[: len(bounds[:1])] = map(min, bounds[:1], self._limits)
        decision = fitting(problem, found.decision) if broken else found.decision
        self.best = better(problem, self.best, decision)
        self.solution = with_status(
            problem, self.best, (bounds, self._limits), self.seconds(), found.solver
        )
        return broken


def resolve_with_node_rows(
    problem: Problem, previous: SolvedProblem, **how: Any
) -> tuple[Solution, bool] | None:
    """Return what `warm_start.resolve` does with the rows of the last solve, as far as it fits."""
    if not problem.nodes:
        return resolve(problem, previous, **how)
    rows = previous.solution.node_rows
    found = resolve(replace(problem, node_rows=rows), previous, **how)
    if found is None:
        return None
    solution, is_enough = found
    fit = _FittingSolutions(problem, lambda: solution.seconds, None)
    broken = fit.add(solution)
    fitted = replace(fit.solution, prices=solution.prices, node_rows=rows)
    return fitted, is_enough and not broken


def _with_equal_pods(problem: Problem, broken: NodeRows) -> NodeRows:
    """Return workloads and clusters, and all workloads with the same Pods on the same clusters."""
    same = members_by_key((item.pods, item.name) for item in problem.workloads)
    pods = {item.name: item.pods for item in problem.workloads}
    return frozenset((other, on) for name, on in broken for other in same[pods[name]])
