"""Which workloads and which clusters are interchangeable: all symmetry keys of the model.

A symmetry of an integer program is a permutation of its variables that keeps every row and the
objective (F. Margot, "Symmetry in Integer Linear Programming", 50 Years of Integer Programming,
2010). Equal keys are sufficient for one, not necessary: a key lists everything that a rule or the
objective reads of a workload, or of a cluster's resources and policies.

Workloads have a key for each of two questions, because neither answers the other:

- `workload_keys`: which can be swapped in a decision of one problem? It reads values, because a
  swap must keep the objective, and of constraints only which candidates they leave.
- `relaxation_keys`: which can be swapped in the question whether all can run, whatever limits are
  relaxed? It reads no values. It reads the constraints themselves: a workload that is pinned to a,
  and one that is pinned to a and b but excludes b, have the same candidates until pins alone hold.

`solve.blocks.block_problem` merges rows and columns of a reduced problem that are equal, entry
by entry. There is more of that: what the reduction drops, such as where a workload runs now, no
longer makes a difference, while it does to decisions of the problem itself.
"""

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import fields
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from optimizer.domain.arrays import Floats, members_by_key
from optimizer.domain.fleet import Fleet, Workload
from optimizer.model.parameters import ProblemWorkload
from optimizer.model.problem import Problem

Key = tuple[Any, ...]
"""What a resource or policy is to rules and objective."""

Name = TypeVar("Name", bound=Hashable)

KEYED_FIELDS = tuple(
    item.name
    for item in fields(ProblemWorkload)
    if item.name not in {"name", "app", "workload_affinity", "workload_anti_affinity"}
)
"""The fields that make two workloads differ. `app` is in the values; affinities are not
keyed because a workload with either has no key."""

_RELAXATION_FIELDS = tuple(
    item.name
    for item in fields(Workload)
    if item.name
    not in {"name", "app", "labels", "workload_anti_affinity", "placement", "priority"}
    | {"move_cost", "current", "pending"}
)
"""The same for `relaxation_keys`, which add what they need of the names, apps and labels; the
others change what assignments are worth, not which are possible."""


class ClusterForm(NamedTuple):
    """A cluster's key, and its resources and policies in an order that equal clusters share.

    Where the keys of two clusters are equal, resource i of one corresponds to resource i of the
    other, and so do the policies.
    """

    key: Hashable
    resources: tuple[int, ...]
    policies: tuple[int, ...]


def classes(keys: Mapping[Name, Hashable]) -> list[list[Name]]:
    """Return the classes with equal keys, in the order of their first member."""
    return list(members_by_key((key, name) for name, key in keys.items()).values())


def workload_keys(problem: Problem) -> dict[int, Hashable]:
    """Return the key of each workload; one that affinity rules or nodes name is like no other."""
    named = {name for item in problem.workloads for some in item.workload_affinity for name in some}
    named |= {name for item in problem.workloads for name in item.workload_anti_affinity}
    named |= {
        name for nodes in problem.nodes.values() for group in nodes.groups for name, _ in group.held
    }
    return {
        number: (
            *(getattr(item, name) for name in KEYED_FIELDS),
            _digest(problem.values, number),
            *(float(limit.workloads[number]) for limit in problem.limits),
            *(_digest(limit.assignments, number) for limit in problem.limits),
        )
        for number, item in enumerate(problem.workloads)
        if not (item.workload_affinity or item.workload_anti_affinity or item.name in named)
    }


def relaxation_keys(
    fleet: Fleet, counts: Mapping[str, int], apps: Container[str]
) -> Mapping[str, Hashable]:
    """Return a key by workload; equal keys are interchangeable whatever limits are relaxed.

    `counts`: on how many clusters they run. `apps`: those whose workloads equal no other app's.
    """
    lacking = {
        app: tuple(held.lacks(app) for held in fleet.scores.values())
        for app in {item.app for item in fleet.workloads}
    }
    labelled = any(item.workload_selectors for item in fleet.workloads)
    costed = any(item.score for item in fleet.limits)
    named = {name for item in fleet.workloads for name in (*item.apart_from, *item.together_with)}
    named |= {
        item.name for item in fleet.workloads if item.workload_anti_affinity or item.apart_from
    }

    def key(item: Workload) -> Hashable:
        by_app = costed or item.minimum_score is not None or item.app in apps
        return (
            *(getattr(item, name) for name in _RELAXATION_FIELDS),
            counts.get(item.name, 0),
            item.name if item.name in named else "",
            frozenset(item.labels.items()) if labelled else None,
            item.app if by_app else lacking[item.app],
            tuple(item.current for limit in fleet.limits if item.name in limit.moving),
        )

    return {item.name: key(item) for item in fleet.workloads}


def cluster_forms(problem: Problem) -> list[ClusterForm]:
    """Return the form of each cluster by all that rules and the objective read of it."""
    columns = problem.values.T.copy()
    counted = [(limit.counted.tolist(), limit.policies.tolist()) for limit in problem.limits]
    costs = [None if item.assignments is None else item.assignments.T for item in problem.limits]
    return _forms(
        problem,
        lambda number: (
            _digest(columns, number),
            *(by_resource[number] for by_resource, _ in counted),
            *(_digest(array, number) for array in costs),
        ),
        lambda number: (
            problem.policies[number].current,
            *(by_policy[number] for _, by_policy in counted),
        ),
        list(zip(*problem.labels.values(), strict=True)) or [()] * len(problem.clusters),
    )


def supply_forms(problem: Problem) -> list[ClusterForm]:
    """Return the form of each cluster by what it can supply and what its policies cost.

    It leaves out values, limits, labels and what is current: clusters of equal form can exchange
    all that they have if these agree for what is exchanged.
    """
    return _forms(problem, lambda _: (), lambda _: (), [()] * len(problem.clusters))


def _forms(
    problem: Problem,
    more_of_resource: Callable[[int], Key],
    more_of_policy: Callable[[int], Key],
    labels: Sequence[Key],
) -> list[ClusterForm]:
    """Return the forms by supply, and by what is added to the keys of resources and policies.

    Each distinct key gets a number, because numbers are sorted and compared faster.
    """
    numbers: dict[Key, int] = {}
    base, found = problem.base.tolist(), list[ClusterForm]()
    by_cluster = zip(labels, problem.resources_on, problem.policies_on, strict=True)
    for label, resources, policies in by_cluster:
        own: dict[int, int] = {}
        for at in resources:
            key = (*problem.resources[at][1:], base[at], *more_of_resource(at))
            own[at] = numbers.setdefault(key, len(numbers))
        theirs: dict[int, int] = {}
        for at in policies:
            policy = problem.policies[at]
            supplies = sorted([(own[resource], amount) for resource, amount in policy.supplies])
            key = (policy.pool, policy.value, policy.nodes, *supplies, *more_of_policy(at))
            theirs[at] = numbers.setdefault(key, len(numbers))
        nodes = problem.nodes.get(len(found))
        found.append(
            ClusterForm(
                (tuple(sorted(own.values())), tuple(sorted(theirs.values())), label, nodes),
                tuple(sorted(own, key=own.__getitem__)),
                tuple(sorted(theirs, key=theirs.__getitem__)),
            )
        )
    return found


def _digest(values: Floats | None, number: int) -> bytes:
    return b"" if values is None else blake2b(values[number].tobytes(), digest_size=16).digest()
