"""Which workloads and which clusters are interchangeable in every decision.

A symmetry of an integer program is a permutation of its variables that keeps every row and the
objective (F. Margot, "Symmetry in Integer Linear Programming", 50 Years of Integer Programming,
2010). Equal keys are sufficient for one, not necessary: a key lists everything that a rule or the
objective reads of a workload, or of a cluster's resources and policies.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from optimizer.domain.arrays import Floats
from optimizer.model.problem import Problem, ProblemWorkload

Key = tuple[Any, ...]
"""What a resource or policy is to rules and objective; keys of one kind can be ordered."""

Name = TypeVar("Name", bound=Hashable)


KEYED_FIELDS = tuple(
    item.name
    for item in fields(ProblemWorkload)
    if item.name not in {"name", "app", "workload_affinity", "workload_anti_affinity"}
)
"""The fields that make two workloads differ. `app` is in the values; affinities are not
keyed because a workload with either has no key."""


class ClusterForm(NamedTuple):
    """A cluster's key, and its resources and policies in an order that equal clusters share.

    Where the keys of two clusters are equal, resource i of one corresponds to resource i of the
    other, and so do the policies.
    """

    key: Hashable
    resources: tuple[int, ...]
    policies: tuple[int, ...]


def classes(keys: Mapping[Name, Hashable]) -> list[list[Name]]:
    """Return the classes of two or more with equal keys, in the order of their first member."""
    together: dict[Hashable, list[Name]] = {}
    for name, key in keys.items():
        together.setdefault(key, []).append(name)
    return [own for own in together.values() if len(own) > 1]


def workload_keys(problem: Problem) -> dict[int, Hashable]:
    """Return the key of each workload; one that affinity rules name is like no other."""
    named = {name for item in problem.workloads for some in item.workload_affinity for name in some}
    named |= {name for item in problem.workloads for name in item.workload_anti_affinity}
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


def cluster_forms(problem: Problem) -> list[ClusterForm]:
    """Return the form of each cluster by all that rules and the objective read of it."""
    resources = {
        number: (
            *_supplied_without_policy(problem, number),
            _digest(problem.values, (slice(None), number)),
            *(bool(limit.counted[number]) for limit in problem.limits),
            *(_digest(limit.assignments, (slice(None), number)) for limit in problem.limits),
        )
        for number in range(len(problem.resources))
    }
    policies = {
        number: (
            *_supplied_by_policy(problem, number),
            problem.policies[number].current,
            tuple(float(limit.policies[number]) for limit in problem.limits),
        )
        for number in range(len(problem.policies))
    }
    labels = zip(*problem.labels.values(), strict=True) if problem.labels else None
    return list(_forms(problem, resources, policies, list(labels) if labels else None))


def supply_forms(problem: Problem) -> list[ClusterForm]:
    """Return the form of each cluster by what it can supply and what its policies cost.

    It leaves out values, limits, labels and what is current: clusters of equal form can exchange
    all that they have if these agree for what is exchanged.
    """
    resources = {
        number: _supplied_without_policy(problem, number)
        for number in range(len(problem.resources))
    }
    policies = {
        number: _supplied_by_policy(problem, number) for number in range(len(problem.policies))
    }
    return list(_forms(problem, resources, policies, None))


def _supplied_without_policy(problem: Problem, number: int) -> Key:
    resource = problem.resources[number]
    return resource.kind, resource.device, float(problem.base[number])


def _supplied_by_policy(problem: Problem, number: int) -> Key:
    policy = problem.policies[number]
    supplies = sorted((*problem.resources[at][1:], amount) for at, amount in policy.supplies)
    return policy.pool, policy.value, tuple(supplies)


def _forms(
    problem: Problem,
    resources: Mapping[int, Key],
    policies: Mapping[int, Key],
    labels: Sequence[Hashable] | None,
) -> Iterator[ClusterForm]:
    own_resources: list[list[int]] = [[] for _ in problem.clusters]
    own_policies: list[list[int]] = [[] for _ in problem.clusters]
    for number in sorted(resources, key=resources.__getitem__):
        own_resources[problem.resources[number].cluster].append(number)
    for number in sorted(policies, key=policies.__getitem__):
        own_policies[problem.policies[number].cluster].append(number)
    for cluster, (mine, ours) in enumerate(zip(own_resources, own_policies, strict=True)):
        key = (
            tuple(resources[number] for number in mine),
            tuple(policies[number] for number in ours),
            labels[cluster] if labels else None,
        )
        yield ClusterForm(key, tuple(mine), tuple(ours))


def _digest(values: Floats | None, at: int | tuple[slice, int]) -> bytes:
    return b"" if values is None else blake2b(values[at].tobytes(), digest_size=16).digest()
