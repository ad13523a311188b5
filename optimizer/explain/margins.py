"""What the objective loses in the best decision without an assignment, or with a forced one.

The first loss is the margin of an assignment (why here), the second answers why not elsewhere.

Any decision without the assignment bounds its margin from above. If one loses nothing, the margin
is 0, because no decision is better than the optimum. So each decision that is found bounds the
margins of all assignments that it lacks.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from dsf.api.untrusted_text import listed
from optimizer.domain.fleet import Fleet
from optimizer.domain.issue import TAKEN_REASONS, TRUST_REASONS, UNSELECTABLE_REASONS
from optimizer.domain.solution import (
    Assignment,
    Decision,
    PolicyEnforcement,
    Solution,
    TimeLeft,
    unlimited,
)
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.forced_problems import (
    ForcedSolution,
    SymmetricExchange,
    excluding,
    forcing_policy,
    forcing_workload,
    objective_loss,
    solve_forced,
)
from optimizer.model.predicates import PREDICATES, ResourceIndex, ineligible
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.model.wire_values import assignment_value, placed
from optimizer.solve.greedy import fill_remaining
from optimizer.wire.explanation import (
    AssignmentReason,
    ObjectiveLoss,
    RunnerUp,
    WhyNotAnswer,
    WhyNotQuestion,
)


class Margin(NamedTuple):
    """What a decision without an assignment loses; exact: no other loses less."""

    lost: ObjectiveLoss
    exact: bool
    decision: Decision


class Margins:
    """The margins of an optimal solution's assignments, or of those of some workloads.

    `known`: by number of the assignment, its margin, or the least bound so far.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        solve: ProblemSolver,
        time_left: TimeLeft = unlimited,
        is_about: Callable[[str], bool] = bool,
    ) -> None:
        self._problem, self._solution, self._optimum = problem, solution, solution.decision
        self._solve, self._time_left = solve, time_left
        self._symmetry = SymmetricExchange(problem)
        placed_on = enumerate(self._optimum.assignments)
        self._asked = [number for number, item in placed_on if is_about(item.workload)]
        self.known = dict[int, Margin]()

    def steps(self) -> Iterator[None]:
        """Find what needs no solver, then solve for one assignment at a time.

        Raises BudgetExceeded.
        """
        for number, assignment in self._open():
            other = self._symmetry.without(self._optimum, assignment)
            if other is not None:
                self._close(number, other)
        for _, assignment in self._open():
            self._bound(self._refilled(assignment))
        yield
        for number, assignment in self._open():
            without = excluding(self._problem, assignment)
            forced = solve_forced(self._problem, self._optimum, without, self._solve)
            if forced.lost is not None:
                self._close(number, forced.decision)
            yield

    def reasons(self) -> Iterator[AssignmentReason]:
        """Yield each assignment with its runner-up and its margin, or a bound of the margin."""
        every = tuple(placed(self._problem, self._solution))
        for number in self._asked:
            item = every[number]
            assignment, known = self._optimum.assignments[number], self.known.get(number)
            others = known.decision.assignments if known else ()
            yield AssignmentReason(
                **item.model_dump(),
                runner_up=runner_up(self._problem, assignment),
                margin=known.lost if known and known.exact else None,
                at_most=known.lost if known else None,
                instead=tuple(
                    assignment_value(other)
                    for other in others
                    if other.workload == assignment.workload
                ),
            )

    def _open(self) -> Iterator[tuple[int, Assignment]]:
        """Yield the assignments without an exact margin, by number; the smallest bounds first."""

        def bound(number: int) -> float:
            return self.known[number].lost.total if number in self.known else inf

        for number in sorted(self._asked, key=bound):
            if number not in self.known or not self.known[number].exact:
                if not self._time_left():
                    raise BudgetExceeded
                yield number, self._optimum.assignments[number]

    def _refilled(self, assignment: Assignment) -> Decision:
        """Return the optimum without an assignment, and with what has room then."""
        left = tuple(item for item in self._optimum.assignments if item != assignment)
        return fill_remaining(
            excluding(self._problem, assignment),
            replace(self._optimum, assignments=left),
            lambda: not self._time_left(),
        )

    def _close(self, number: int, best: Decision) -> None:
        """Learn from the best decision without an assignment."""
        self.known[number] = Margin(self._loss(best), exact=True, decision=best)
        self._bound(best)

    def _bound(self, decision: Decision) -> None:
        """Learn the margins that a decision bounds: of the open assignments that it lacks."""
        if violations(self._problem, decision):
            return
        loss, taken = self._loss(decision), set(decision.assignments)
        found = Margin(loss, exact=not any(_by_priority(loss)), decision=decision)
        for number in self._asked:
            assignment, known = self._optimum.assignments[number], self.known.get(number)
            less = known is None or _by_priority(loss) < _by_priority(known.lost)
            if assignment not in taken and less and not (known and known.exact):
                self.known[number] = found

    def _loss(self, decision: Decision) -> ObjectiveLoss:
        return objective_loss(self._problem, self._optimum, decision)


def _by_priority(loss: ObjectiveLoss) -> tuple[float, ...]:
    """Return the losses by priority, the highest first."""
    return tuple(loss.by_priority.values()) or (loss.total,)


def runner_up(problem: Problem, assignment: Assignment) -> RunnerUp | None:
    """Return the workload's best other resource by score alone; None where no other is usable.

    The gain of staying on a current cluster does not count.
    """
    found = problem.indexes(assignment)
    if found is None:
        return None
    workload, taken = found
    scores = problem.values[workload].copy()
    staying = np.isin(
        problem.resource_cluster, np.array(problem.workloads[workload].running, dtype=np.int64)
    )
    scores[staying] -= problem.workloads[workload].move_cost
    scores[taken] = np.nan
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    other = problem.assignment(workload, best)
    return RunnerUp(cluster=other.cluster, device=other.device, score=float(scores[best]))


_MEANINGS = {
    name: " ".join((found.rules_out.__doc__ or "").split()).rstrip(".")
    for name, found in PREDICATES.items()
}
"""The meaning of each predicate: the first line of its docstring."""


def why_not(
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    question: WhyNotQuestion,
    solve: ProblemSolver,
) -> WhyNotAnswer:
    """Return what it costs to force the assignment or the policy that a question names."""
    cluster, workload = question.cluster, question.workload or ""
    if question.policy is not None:
        asked = f"policy {question.policy} on cluster {cluster}"
        number = problem.policy_index.get(PolicyEnforcement(cluster, question.policy))
        forced = None if number is None else forcing_policy(problem, number)
        message = "it is not a candidate there, or supplies nothing that a workload can use"
        why = [message, *_issues(fleet, cluster, UNSELECTABLE_REASONS | TAKEN_REASONS)]
        doubts: list[str] = []
    else:
        on = f"{question.device} of cluster {cluster}" if question.device else f"cluster {cluster}"
        asked = f"workload {workload} on {on}"
        forced = _forced(problem, workload, cluster, question.device or None)
        why = _why_ineligible(fleet, workload, cluster)
        doubts = _issues(fleet, cluster, TRUST_REASONS)
    if forced is None:
        return WhyNotAnswer(asked=asked, possible=False, message=". ".join(why))
    found = solve_forced(problem, solution.decision, forced, solve, times=1, workload=workload)
    answer = _answer(solution, asked, found)
    return answer.model_copy(update={"message": ". ".join((answer.message, *doubts))})


def _answer(before: Solution, asked: str, found: ForcedSolution) -> WhyNotAnswer:
    if found.possible is None or before.status != "Optimal":
        return WhyNotAnswer(asked=asked, possible=found.possible, message="not computed in time")
    if found.lost is None:
        message = "every solution with it breaks a rule"
        return WhyNotAnswer(asked=asked, possible=False, message=message)
    old, new = set(before.decision.assignments), found.decision.assignments
    moved = tuple(assignment_value(item) for item in new if item not in old)
    gone = {item.workload for item in old} - {item.workload for item in new}
    message = f"the best solution with it is worth {found.lost.total:g} less"
    if found.lost.total <= 0:
        message = "a solution with it is worth as much"
    if gone:
        message += f"; without a place then: {listed(sorted(gone))}"
    return WhyNotAnswer(asked=asked, possible=True, message=message, lost=found.lost, places=moved)


def _forced(problem: Problem, workload: str, cluster: str, device: str | None) -> Problem | None:
    """Return the problem in which a workload must run on a cluster, or on a device of it.

    None: the workload has no candidate assignment there.
    """
    number, at = problem.workload_index.get(workload), problem.cluster_index.get(cluster)
    if number is None or at is None:
        return None
    there = problem.resource_cluster == at
    asked = np.array([device is None or item.device == device for item in problem.resources])
    usable = ~np.isnan(problem.values)
    if not usable[number, there & asked].any():
        return None
    usable[number, there & ~asked] = False
    allowed = problem.restricted(usable, np.ones(len(problem.policies), dtype=np.bool_))
    return forcing_workload(allowed, workload, [at])


def _why_ineligible(fleet: Fleet, workload: str, cluster: str) -> list[str]:
    """Return what makes every resource of a cluster ineligible for a workload, in sentences."""
    target = next((item for item in fleet.workloads if item.name == workload), None)
    names = [item.name for item in fleet.clusters]
    if target is None:
        return [
            f"the request names no workload {workload}, or it could not be read: see the issues"
        ]
    if cluster not in names:
        return [f"the request names no cluster {cluster}"]
    index = ResourceIndex(fleet)
    if not len(index.resources):
        return [f"no cluster supplies {target.kind}"]
    there = index.cluster == names.index(cluster)
    found = [name for name, some in ineligible(index, target).items() if some[there].any()]
    words = "; ".join(f"{reason}: {_MEANINGS[reason]}" for reason in found)
    taken_away = _issues(fleet, cluster, UNSELECTABLE_REASONS | TAKEN_REASONS)
    distrusted = _issues(fleet, cluster, TRUST_REASONS)
    return [words or f"cluster {cluster} supplies no {target.kind}", *taken_away, *distrusted]


def _issues(fleet: Fleet, cluster: str, reasons: frozenset[str]) -> list[str]:
    return [
        item.message for item in fleet.issues if item.cluster == cluster and item.reason in reasons
    ]
