"""What runs now, as a decision."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from optimizer.domain.fleet import Cluster, Fleet
from optimizer.domain.solution import Assignment, Decision
from optimizer.model.problem import Problem
from optimizer.model.rules import violations


class Start(NamedTuple):
    """What runs now; `unknown`: what is said to run, but can't by the problem's rules, in words."""

    decision: Decision
    unknown: tuple[str, ...]


def start(problem: Problem, goal: Decision) -> Start:
    """Return the policies enforced and the places taken now, as far as rules allow them.

    Objects say on which cluster a workload runs, not on which device: where several are possible it
    is the one that it keeps, else the best.
    """
    wide = surged(problem, 0)
    choices = tuple(
        problem.enforcement(index)
        for index, option in enumerate(problem.policies)
        if option.current
    )
    found = Decision(choices) if not violations(wide, Decision(choices)) else Decision()
    unknown = [] if found.policies == choices else ["the policies that are enforced break rules"]
    running = list(_running(problem))
    everything = _with(problem, found, [(task, slots) for task, slots in running], goal)
    if not violations(wide, everything):
        return Start(everything, tuple(unknown + _lacking(problem, everything)))
    for task, slots in running:
        grown = _with(problem, found, [(task, slots)], goal)
        if not violations(wide, grown):
            found = grown
    return Start(found, tuple(unknown + _lacking(problem, found)))


def with_enforced(fleet: Fleet) -> Fleet:
    """Return the fleet with all policies in force as candidates, the same if it has them.

    Where a candidate of the pool is there already, what the request says of GPUs counts.
    """
    clusters = tuple(map(_with_enforced, fleet.clusters))
    return fleet if clusters == fleet.clusters else replace(fleet, clusters=clusters)


def _with_enforced(cluster: Cluster) -> Cluster:
    known = {item.policy for item in cluster.candidates}
    pools = {item.pool for item in cluster.candidates if item.current}
    more = [i for i in cluster.enforced if i.policy not in known and i.pool not in pools]
    return replace(cluster, candidates=(*cluster.candidates, *more)) if more else cluster


def surged(problem: Problem, more: int) -> Problem:
    """Return the problem in which workloads may run on their old and new clusters, and on more.

    Of all rules only the number of replicas gives way while something moves.
    """
    tasks = (
        replace(task, replicas=task.replicas + len(task.current) + more)
        for task in problem.workloads
    )
    return replace(problem, workloads=tuple(tasks))


def _running(problem: Problem) -> Iterator[tuple[int, list[int]]]:
    """Yield each current place as a task and the slots that can be it, best first."""
    there = np.array(problem.base > 0)
    for option in problem.policies:
        if option.current:
            there[[slot for slot, _ in option.supplies]] = True
    for task, wanted in enumerate(problem.workloads):
        for cluster in wanted.current:
            values = problem.values[task]
            usable = there & (problem.resource_cluster == cluster) & ~np.isnan(values)
            slots = np.nonzero(usable)[0]
            yield task, slots[np.argsort(-values[slots], kind="stable")].tolist()


def _with(
    problem: Problem, before: Decision, running: list[tuple[int, list[int]]], goal: Decision
) -> Decision:
    kept = set(goal.assignments)
    added: list[Assignment] = []
    for task, slots in running:
        places = [problem.assignment(task, slot) for slot in slots]
        added += ([place for place in places if place in kept] or places)[:1]
    return Decision(before.policies, (*before.assignments, *added))


def _lacking(problem: Problem, found: Decision) -> list[str]:
    pairs = {(place.workload, place.cluster) for place in found.assignments}
    return [
        f"workload {task.name} on cluster {problem.clusters[cluster]}"
        for task in problem.workloads
        for cluster in task.current
        if (task.name, problem.clusters[cluster]) not in pairs
    ]
