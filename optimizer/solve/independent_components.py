"""Parts of a problem that have nothing to do with each other: each is solved by itself."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.model.rules import COUPLING_RULES, replicas
from optimizer.solve.blocks.block_problem import Flags, Ints


def independent_components(problem: Problem) -> list[Problem]:
    """Return the independent parts: no task and no row of a rule speaks of two of them.

    Clusters on which nothing can run belong to none. A part has all priorities, those too that no
    task of it has: what its options cost belongs to the last.
    """
    usable = ~np.isnan(problem.values)
    found = list(_connected(_clusters_of(problem, usable)))
    if len(found) > 1:
        found = _linked(problem, found)
    if len(found) <= 1:
        return [problem]
    option_cluster = np.array([option.cluster for option in problem.policies], np.int64)
    cut = (
        problem.restricted(
            usable & own[problem.resource_cluster][None, :],
            own[option_cluster] if len(option_cluster) else np.zeros(0, np.bool_),
        )
        for own in found
    )
    return [replace(part, priorities=problem.tiers) for part in cut]


def combined(problem: Problem, decisions: Iterable[Decision]) -> Decision:
    """Return decisions on parts as one on the whole, in its order."""
    every = list(decisions)
    options = sorted(problem.policy_index[item] for one in every for item in one.policies)
    pairs = sorted(
        pair
        for one in every
        for place in one.assignments
        if (pair := problem.indexes(place)) is not None
    )
    return Decision(
        tuple(problem.enforcement(option) for option in options),
        tuple(problem.assignment(task, slot) for task, slot in pairs),
    )


def within_component(part: Problem, decision: Decision) -> Decision:
    """Return what a decision says of a part."""
    return Decision(
        tuple(choice for choice in decision.policies if choice in part.policy_index),
        tuple(place for place in decision.assignments if part.indexes(place) is not None),
    )


def _clusters_of(problem: Problem, usable: Flags) -> Flags:
    """Return on which clusters each task can run: [task, cluster]."""
    found = np.zeros((len(problem.workloads), len(problem.clusters)), np.bool_)
    order = np.argsort(problem.resource_cluster, kind="stable")
    clusters, starts = np.unique(problem.resource_cluster[order], return_index=True)
    found[:, clusters] = np.logical_or.reduceat(usable[:, order], starts, axis=1)
    return found


def _connected(reached: Flags) -> Iterator[Flags]:
    """Yield sets of clusters that tasks hold together."""
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


def _linked(problem: Problem, found: list[Flags]) -> list[Flags]:
    """Merge sets of clusters of which a row that couples clusters speaks."""
    for rule in COUPLING_RULES:
        if rule is replicas:  # of one task, whose clusters are together already
            continue
        for row in rule(problem):
            found = _merged(found, np.unique(problem.column_cluster[row.columns]))
    return found


def _merged(found: list[Flags], clusters: Ints) -> list[Flags]:
    hit = [own for own in found if own[clusters].any()]
    if len(hit) <= 1:
        return found
    rest = [own for own in found if not own[clusters].any()]
    whole: Flags = np.logical_or.reduce(hit)
    return [*rest, whole]
