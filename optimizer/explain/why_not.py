"""Why not another assignment or policy: what forcing it costs the objective."""

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
    """Return what it costs to force the assignment or the policy that a question names."""
    cluster, workload = question.cluster, question.workload or ""
    if question.policy is not None:
        asked = f"policy {question.policy} on cluster {cluster}"
        number = problem.policy_index.get(PolicyEnforcement(cluster, question.policy))
        forced = None if number is None else forcing_policy(problem, number)
        message = "it is no candidate there, or supplies nothing that a workload can use"
        why = [message, *_issues(fleet, cluster, UNSELECTABLE_REASONS | OTHERS_REASONS)]
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
    taken_away = _issues(fleet, cluster, UNSELECTABLE_REASONS | OTHERS_REASONS)
    distrusted = _issues(fleet, cluster, TRUST_REASONS)
    return [words or f"cluster {cluster} supplies no {target.kind}", *taken_away, *distrusted]


def _issues(fleet: Fleet, cluster: str, reasons: frozenset[str]) -> list[str]:
    return [
        item.message for item in fleet.issues if item.cluster == cluster and item.reason in reasons
    ]
