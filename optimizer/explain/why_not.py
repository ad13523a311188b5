"""What it would cost to force an assignment or a policy that a plan lacks, or why none can be."""

from collections.abc import Iterator

import numpy as np

from dsf.api.untrusted_text import joined, listed
from optimizer.domain.arrays import Bools
from optimizer.domain.fleet import Fleet
from optimizer.domain.issue import (
    TAKEN_REASONS,
    TRUST_REASONS,
    UNSELECTABLE_REASONS,
    TakenIssue,
    withheld,
)
from optimizer.domain.solution import PolicyEnforcement, Solution
from optimizer.explain.case import ProblemSolver
from optimizer.explain.forced_problems import (
    ForcedSolution,
    forcing_policy,
    forcing_workload,
    solve_forced,
)
from optimizer.model.predicates import PREDICATES, ResourceIndex, ineligible
from optimizer.model.problem import Problem
from optimizer.model.wire_values import assignment_value
from optimizer.wire.explanation import WhyNotAnswer, WhyNotQuestion

_SHOWN = 3
"""Clusters that a workload names, or workloads on one of them, that are told."""

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
        pinned = _why_not_pinned(fleet, problem, solution, workload, cluster)
        why = [*_why_ineligible(fleet, workload, cluster), *pinned]
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
    there = (index.cluster == names.index(cluster)) & index.kind.get(target.kind, index.none)
    found = {name: some[there] for name, some in ineligible(index, target).items()}
    # What rules out every device is the reason; what rules out some would mislead beside it.
    reasons = [name for name, some in found.items() if some.size and some.all()]
    reasons = reasons or [name for name, some in found.items() if some.any()]
    held = {"NoSupply": _held(fleet, index, there, cluster)}
    words = "; ".join(f"{reason}: {held.get(reason) or _MEANINGS[reason]}" for reason in reasons)
    taken_away = _issues(fleet, cluster, UNSELECTABLE_REASONS | TAKEN_REASONS)
    distrusted = _issues(fleet, cluster, TRUST_REASONS)
    return [words or _no_supply(fleet, cluster, target.kind), *taken_away, *distrusted]


def _why_not_pinned(
    fleet: Fleet, problem: Problem, solution: Solution, workload: str, cluster: str
) -> Iterator[str]:
    """Yield why a workload that lacks a place has none where it is pinned, if not to a cluster."""
    target = next((item for item in fleet.workloads if item.name == workload), None)
    places = [item.cluster for item in solution.decision.assignments if item.workload == workload]
    if target is None or cluster in target.clusters or len(places) >= target.replicas:
        return
    named = [c.name for c in fleet.clusters if c.name in target.clusters and c.name not in places]
    for name in named[:_SHOWN]:
        users = [item.workload for item in solution.decision.assignments if item.cluster == name]
        why = f"this plan has {listed(users, _SHOWN)} there" if users else ""
        if _forced(problem, workload, name, None) is None:
            why = ". ".join(_why_ineligible(fleet, workload, name))
        yield f"On cluster {name}, which it names, it has no place{why and ': '}{why}"


def _held(fleet: Fleet, index: ResourceIndex, there: Bools, cluster: str) -> str:
    """Return how much of its devices a cluster has free, if others hold some; else empty."""
    less = withheld(fleet.issues, cluster)
    found = (
        f"{free:g} of {free + less[kind, device]:g} {f'{kind} {device}'.strip()}"
        for at in np.flatnonzero(there)
        for (_, kind, device), free in [(index.resources[at], index.most[at])]
        if (kind, device) in less
    )
    return f"cluster {cluster} has only {said} free" if (said := joined(found, _SHOWN)) else ""


def _no_supply(fleet: Fleet, cluster: str, kind: str) -> str:
    """Return that a cluster has nothing of a kind, or that others have all of it."""
    taken = (i for i in fleet.issues if isinstance(i, TakenIssue) and i.cluster == cluster)
    if any(item.concerns({kind}, ()) for item in taken):
        return f"cluster {cluster} has no {kind} free"
    return f"cluster {cluster} supplies no {kind}"


def _issues(fleet: Fleet, cluster: str, reasons: frozenset[str]) -> list[str]:
    return [
        item.message for item in fleet.issues if item.cluster == cluster and item.reason in reasons
    ]
