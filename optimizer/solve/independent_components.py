"""Independent components of a problem: parts that no workload and no row connects."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from optimizer.domain.arrays import Bools, Ints
from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.model.rules import COUPLING_RULES, replicas


def independent_components(problem: Problem) -> list[Problem]:
    """Return the components, each with all priorities, so that their tiers correspond.

    Clusters on which nothing can run belong to none.
    """
    usable = ~np.isnan(problem.values)
    found = list(_connected(_clusters_of(problem, usable)))
    if len(found) > 1:
        found = _linked(problem, found)
    if len(found) <= 1:
        return [problem]
    policy_cluster = np.array([policy.cluster for policy in problem.policies], np.int64)
    cut = (
        problem.restricted(
            usable & own[problem.resource_cluster][None, :],
            own[policy_cluster] if len(policy_cluster) else np.zeros(0, np.bool_),
        )
        for own in found
    )
    return [replace(part, priorities=problem.tiers) for part in cut]


def combined(problem: Problem, decisions: Iterable[Decision]) -> Decision:
    """Return decisions about components as one about the whole, in the order of the problem."""
    policies, pairs = zip(*map(problem.numbered, decisions), strict=True)
    return problem.named(chain.from_iterable(policies), chain.from_iterable(pairs))


def within_component(part: Problem, decision: Decision) -> Decision:
    """Return the part of a decision that is about a component."""
    return Decision(
        tuple(choice for choice in decision.policies if choice in part.policy_index),
        tuple(
            assignment
            for assignment in decision.assignments
            if part.indexes(assignment) is not None
        ),
    )


def _clusters_of(problem: Problem, usable: Bools) -> Bools:
    """Return on which clusters each workload can run, [workloads, clusters]."""
    found = np.zeros((len(problem.workloads), len(problem.clusters)), np.bool_)
    order = np.argsort(problem.resource_cluster, kind="stable")
    clusters, starts = np.unique(problem.resource_cluster[order], return_index=True)
    found[:, clusters] = np.logical_or.reduceat(usable[:, order], starts, axis=1)
    return found


def _connected(reached: Bools) -> Iterator[Bools]:
    """Yield the clusters of each component, as flags, with workloads as the edges."""
    left = reached[reached.any(axis=1)]
    while len(left):
        own = left[0]
        while True:
            touching = (left & own).any(axis=1)
            wider = left[touching].any(axis=0)
            if (wider == own).all():
                break
            own = wider
        yield own
        left = left[~touching]


def _linked(problem: Problem, found: list[Bools]) -> list[Bools]:
    """Merge sets of clusters that have entries in the same coupling row."""
    for rule in COUPLING_RULES:
        if rule is replicas:  # it is about one workload, which joins its clusters already
            continue
        for row in rule(problem):
            found = _merged(found, np.unique(problem.column_cluster[row.columns]))
    return found


def _merged(found: list[Bools], clusters: Ints) -> list[Bools]:
    hit = [own for own in found if own[clusters].any()]
    if len(hit) <= 1:
        return found
    rest = [own for own in found if not own[clusters].any()]
    whole: Bools = np.logical_or.reduce(hit)
    return [*rest, whole]
