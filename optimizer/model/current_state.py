"""What runs now, as a decision: a solver's first incumbent, and the start of a transition.

Objects on the hub say on which cluster a workload runs, not on which device. Where several devices
are possible, the one that a given goal keeps is taken, else the one with the highest value.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from optimizer.domain.fleet import Cluster, Fleet
from optimizer.domain.solution import Assignment, Decision
from optimizer.model.allocation import Allocation
from optimizer.model.problem import Problem
from optimizer.model.rules import linking_rows, violations


class CurrentState(NamedTuple):
    """What runs now, and in words what is reported to run although the rules exclude it."""

    decision: Decision
    infeasible: tuple[str, ...]


def incumbent_from_current_state(problem: Problem) -> Decision | None:
    """Return the current policies and assignments; None where together they break a rule.

    Assignments with a value below 0, replicas above the number asked for and policies of clusters
    on which nothing runs are left out, because a better decision leaves them out too.
    """
    found = _allocation_of_current(problem, kept=(), least=0.0).decision()
    used = {assignment.cluster for assignment in found.assignments}
    policies = tuple(policy for policy in found.policies if policy.cluster in used)
    decision = Decision(policies, found.assignments)
    return None if violations(problem, decision) else decision


def current_state(problem: Problem, goal: Decision) -> CurrentState:
    """Return the current policies and assignments as far as the rules allow them.

    Replicas may surge: a workload counts on every cluster where it runs now. `goal`: the decision
    whose assignments win where the device is not known.
    """
    wide, kept = with_surge(problem, 0), frozenset(goal.assignments)
    decision = _allocation_of_current(wide, kept=kept, least=float("-inf")).decision()
    current = [policy for policy in problem.policies if policy.current]
    if violations(wide, decision):
        enforced = [number for number, policy in enumerate(problem.policies) if policy.current]
        candidates = _current_candidates(wide, kept, float("-inf"))
        pairs = [(workload, resources) for workload, _, resources in candidates]
        decision = feasible_part(wide, enforced, pairs)
    broken = len(decision.policies) < len(current)
    words = ["the policies that are enforced break rules"] if broken else []
    return CurrentState(decision, (*words, *_missing(problem, decision)))


def with_surge(problem: Problem, more: int) -> Problem:
    """Return the problem in which workloads may run on old and new clusters at once, and on more.

    Of all rules only the number of replicas gives way while something moves, as `maxSurge` lets a
    Deployment exceed its replicas during a rollout.
    """
    workloads = (
        replace(workload, replicas=workload.replicas + len(workload.current) + more)
        for workload in problem.workloads
    )
    return replace(problem, workloads=tuple(workloads))


def with_enforced_candidates(fleet: Fleet) -> Fleet:
    """Return the fleet with the policies in force among its candidates; itself if they all are.

    A pool that has a current candidate keeps that one: the request knows better what its GPUs are.
    """
    clusters = tuple(map(_with_enforced_candidates, fleet.clusters))
    return fleet if clusters == fleet.clusters else replace(fleet, clusters=clusters)


def _with_enforced_candidates(cluster: Cluster) -> Cluster:
    known = {item.policy for item in cluster.candidates}
    pools = {item.pool for item in cluster.candidates if item.current}
    more = [i for i in cluster.enforced if i.policy not in known and i.pool not in pools]
    return replace(cluster, candidates=(*cluster.candidates, *more)) if more else cluster


def _allocation_of_current(
    problem: Problem, kept: Collection[Assignment], least: float
) -> Allocation:
    """Return current policies and assignments of at least a value, where capacity is left.

    Rules other than capacity are not looked at.
    """
    found = Allocation(problem)
    for number, policy in enumerate(problem.policies):
        if policy.current:
            found.enforce(number)
    for workload, cluster, resources in _current_candidates(problem, kept, least):
        if cluster in problem.workloads[workload].current[: problem.workloads[workload].replicas]:
            free = (item for item in resources if found.has_capacity(workload, item))
            for resource in list(free)[:1]:
                found.assign(workload, resource)
    return found


def feasible_part(
    problem: Problem, policies: Sequence[int], wanted: Iterable[tuple[int, Sequence[int]]]
) -> Decision:
    """Return the policies, unless they break a rule, and what fits, one after another.

    `wanted`: a workload, and resources for one assignment of it, the preferred one first.
    """
    found = Allocation(problem, rows=linking_rows(problem))
    alone = Decision(tuple(map(problem.enforcement, policies)))
    for number in () if violations(problem, alone) else policies:
        found.enforce(number)
    left, before = list(wanted), -1
    while len(left) != before:  # a workload with an affinity fits once that one is there
        before = len(left)
        left = [item for item in left if not _assigned(found, *item)]
    return found.decision()


def _assigned(found: Allocation, workload: int, resources: Sequence[int]) -> bool:
    """Assign a workload to the first resource that it fits; tell whether there was one."""
    for resource in resources:
        if found.fits(workload, resource):
            found.assign(workload, resource)
            return True
    return False


def _current_candidates(
    problem: Problem, kept: Collection[Assignment], least: float
) -> list[tuple[int, int, list[int]]]:
    """Return each workload and current cluster with its possible resources, best first."""
    pairs, values = set(map(problem.indexes, kept)), problem.values

    def best_first(workload: int, cluster: int) -> list[int]:
        usable = (at for at in problem.resources_on[cluster] if values[workload, at] >= least)
        return sorted(usable, key=lambda at: ((workload, at) not in pairs, -values[workload, at]))

    return [
        (workload, cluster, best_first(workload, cluster))
        for workload, wanted in enumerate(problem.workloads)
        for cluster in wanted.current
    ]


def _missing(problem: Problem, decision: Decision) -> list[str]:
    pairs = {(item.workload, item.cluster) for item in decision.assignments}
    return [
        f"workload {workload.name} on cluster {problem.clusters[cluster]}"
        for workload in problem.workloads
        for cluster in workload.current
        if (workload.name, problem.clusters[cluster]) not in pairs
    ]
