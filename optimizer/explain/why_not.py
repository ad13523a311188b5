"""Why not another assignment or policy: what forcing it costs the objective."""

from collections.abc import Sequence

import numpy as np

from dsf.api.untrusted_text import listed
from optimizer.domain.fleet import Fleet
from optimizer.domain.issue import OTHERS_REASONS, TRUST_REASONS, UNSELECTABLE_REASONS
from optimizer.domain.solution import PolicyEnforcement, Solution
from optimizer.explain.case import ProblemSolver
from optimizer.explain.forced_problems import (
    ForcedSolution,
    forcing_policy,
    forcing_workload,
    solve_forced,
)
from optimizer.explain.wire_values import assignment_value
from optimizer.model.predicates import PREDICATES, ResourceIndex, ineligible
from optimizer.model.problem import Problem
from optimizer.wire.explanation import WhyNotAnswer, WhyNotQuestion

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
    """Return what it costs to force what a question names."""
    cluster, device = question.cluster, question.device or None
    if question.policy is not None:
        return why_not_policy(fleet, problem, solution, cluster, question.policy, solve)
    workload = question.workload or ""
    return why_not_assignment(fleet, problem, solution, workload, cluster, device, solve)


def why_not_assignment(
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    workload: str,
    cluster: str,
    device: str | None,
    solve: ProblemSolver,
) -> WhyNotAnswer:
    """Return what it costs that a workload runs on a cluster, or on one of its devices."""
    on = f"{device} of cluster {cluster}" if device else f"cluster {cluster}"
    asked = f"workload {workload} on {on}"
    allowed = _allowed(problem, workload, cluster, device)
    if allowed is None:
        message = _why_ineligible(fleet, workload, cluster)
        return WhyNotAnswer(asked=asked, possible=False, message=message)
    forced = forcing_workload(allowed, workload, [problem.cluster_index[cluster]])
    found = solve_forced(problem, solution.decision, forced, solve, times=1, workload=workload)
    answer, doubts = _answer(solution, asked, found), _distrusted(fleet, cluster)
    return answer.model_copy(update={"message": _sentences(answer.message, doubts)})


def why_not_policy(
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    cluster: str,
    policy: str,
    solve: ProblemSolver,
) -> WhyNotAnswer:
    """Return what it costs that a cluster enforces a policy."""
    asked = f"policy {policy} on cluster {cluster}"
    number = problem.policy_index.get(PolicyEnforcement(cluster, policy))
    if number is None:
        message = "it is no candidate there, or supplies nothing that a workload can use"
        message = _sentences(message, _taken_away(fleet, cluster))
        return WhyNotAnswer(asked=asked, possible=False, message=message)
    forced = forcing_policy(problem, number)
    return _answer(
        solution, asked, solve_forced(problem, solution.decision, forced, solve, times=1)
    )


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


def _allowed(problem: Problem, workload: str, cluster: str, device: str | None) -> Problem | None:
    """Return the problem without the workload's other devices on the cluster.

    None: the workload has no candidate assignment there.
    """
    number, at = problem.workload_index.get(workload), problem.cluster_index.get(cluster)
    if number is None or at is None:
        return None
    there = problem.resource_cluster == at
    asked = np.array([device is None or item.device == device for item in problem.resources])
    if np.isnan(problem.values[number, there & asked]).all():
        return None
    usable = ~np.isnan(problem.values)
    usable[number, there & ~asked] = False
    return problem.restricted(usable, np.ones(len(problem.policies), dtype=np.bool_))


def _why_ineligible(fleet: Fleet, workload: str, cluster: str) -> str:
    """Return what makes every resource of a cluster ineligible for a workload, in words."""
    target = next((item for item in fleet.workloads if item.name == workload), None)
    names = [item.name for item in fleet.clusters]
    if target is None:
        return f"the request names no workload {workload}, or it could not be read: see the issues"
    if cluster not in names:
        return f"the request names no cluster {cluster}"
    index = ResourceIndex(fleet)
    if not len(index.resources):
        return f"no cluster supplies {target.kind}"
    there = index.cluster == names.index(cluster)
    found = [name for name, some in ineligible(index, target).items() if some[there].any()]
    words = "; ".join(f"{reason}: {_MEANINGS[reason]}" for reason in found)
    words = words or f"cluster {cluster} supplies no {target.kind}"
    return _sentences(words, [*_taken_away(fleet, cluster), *_distrusted(fleet, cluster)])


def _sentences(first: str, more: Sequence[str]) -> str:
    return ". ".join((first, *more))


def _taken_away(fleet: Fleet, cluster: str) -> list[str]:
    """Return why OCM can't select a cluster, what would change it, and what others have of it."""
    return _told(fleet, cluster, UNSELECTABLE_REASONS | OTHERS_REASONS)


def _distrusted(fleet: Fleet, cluster: str) -> list[str]:
    """Return which scores of a cluster lost influence, and with which trust."""
    return _told(fleet, cluster, TRUST_REASONS)


def _told(fleet: Fleet, cluster: str, reasons: frozenset[str]) -> list[str]:
    return [
        item.message for item in fleet.issues if item.cluster == cluster and item.reason in reasons
    ]
