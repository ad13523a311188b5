"""Why not another place or policy: what forcing it would cost the objective."""

from collections.abc import Iterable

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import PolicyEnforcement, Solution
from optimizer.explain.margins.forced_problems import (
    ForcedSolution,
    forcing_policy,
    forcing_workload,
    solve_forced,
)
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.explain.wire_values import assignment_value
from optimizer.model.predicates import PREDICATES, ineligible
from optimizer.model.problem import Problem
from optimizer.model.resource_index import ResourceIndex
from optimizer.wire.explanation import WhyNotAnswer

_SAYS = {
    name: " ".join((found.__doc__ or "").split()).rstrip(".") for name, found in PREDICATES.items()
}


def why_not_place(
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    workload: str,
    cluster: str,
    device: str | None,
    resolve: ProblemSolver,
) -> WhyNotAnswer:
    """Return what it costs that a workload runs on a cluster, or on one of its devices."""
    on = f"{device} of cluster {cluster}" if device else f"cluster {cluster}"
    asked = f"workload {workload} on {on}"
    allowed = _allowed(problem, workload, cluster, device)
    if allowed is None:
        return WhyNotAnswer(
            asked=asked, possible=False, message=_in_the_way(fleet, workload, cluster)
        )
    number = problem.cluster_index[cluster]
    forced = forcing_workload(allowed, workload, [number])
    found = solve_forced(problem, solution.decision, forced, resolve, times=1, workload=workload)
    return _answer(solution, asked, found)


def why_not_policy(
    problem: Problem, solution: Solution, cluster: str, policy: str, resolve: ProblemSolver
) -> WhyNotAnswer:
    """Return what it costs that a cluster enforces a policy."""
    asked = f"policy {policy} on cluster {cluster}"
    option = problem.policy_index.get(PolicyEnforcement(cluster, policy))
    if option is None:
        message = "it is no candidate there, or supplies nothing that a workload can use"
        return WhyNotAnswer(asked=asked, possible=False, message=message)
    found = solve_forced(
        problem, solution.decision, forcing_policy(problem, option), resolve, times=1
    )
    return _answer(solution, asked, found)


def _answer(before: Solution, asked: str, found: ForcedSolution) -> WhyNotAnswer:
    if found.possible is None or before.status != "Optimal":
        return WhyNotAnswer(asked=asked, possible=found.possible, message="not computed in time")
    if found.lost is None:
        message = "no decision that keeps all rules has it"
        return WhyNotAnswer(asked=asked, possible=False, message=message)
    old, new = set(before.decision.assignments), found.decision.assignments
    moved = tuple(assignment_value(place) for place in new if place not in old)
    gone = {place.workload for place in old} - {place.workload for place in new}
    message = f"the best solution with it is worth {found.lost.total:g} less"
    if found.lost.total <= 0:
        message = "a solution with it is worth as much"
    if gone:
        message += f"; without a place then: {', '.join(sorted(gone))}"
    return WhyNotAnswer(asked=asked, possible=True, message=message, lost=found.lost, places=moved)


def _allowed(problem: Problem, workload: str, cluster: str, device: str | None) -> Problem | None:
    """Return the problem without the workload's other devices there; None: no place is left."""
    task, number = problem.workload_index.get(workload), problem.cluster_index.get(cluster)
    if task is None or number is None:
        return None
    there = problem.resource_cluster == number
    wanted = np.array([device is None or slot.device == device for slot in problem.resources])
    if np.isnan(problem.values[task, there & wanted]).all():
        return None
    usable = ~np.isnan(problem.values)
    usable[task, there & ~wanted] = False
    return problem.restricted(usable, np.ones(len(problem.policies), dtype=np.bool_))


def _in_the_way(fleet: Fleet, workload: str, cluster: str) -> str:
    """Return what keeps a workload from every device of a cluster, in words."""
    target = next((item for item in fleet.workloads if item.name == workload), None)
    names = [item.name for item in fleet.clusters]
    if target is None:
        return f"the request names no workload {workload}, or it could not be read: see gaps"
    if cluster not in names:
        return f"the request names no cluster {cluster}"
    ground = ResourceIndex(fleet)
    if not len(ground.resources):
        return f"no cluster supplies {target.kind}"
    there = ground.cluster == names.index(cluster)
    found = [name for name, slots in ineligible(ground, target).items() if slots[there].any()]
    return "; ".join(_words(found)) or f"cluster {cluster} supplies no {target.kind}"


def _words(reasons: Iterable[str]) -> Iterable[str]:
    return (f"{reason}: {_SAYS[reason]}" for reason in reasons)
