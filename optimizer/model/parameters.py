"""The parameters of a placement problem: resources, policies, workloads and limits, by number.

Each is an index set of the integer program with its coefficients, in tuples or numpy arrays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple, Self

import numpy as np

from dsf.placement import Toleration
from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.dra.device_sets import DeviceClaim, DeviceClass
from optimizer.domain.fleet import TopologySpread
from optimizer.domain.nodes import NodeGroup, NodeSelectorTerm

NO_DEVICE = ""
"""The device of a resource of a kind that is not divided into devices, such as cpu."""


class ClusterResource(NamedTuple):
    """Where workloads can run: a device of a kind on a cluster (by number)."""

    cluster: int
    kind: str
    device: str


class Nodes(NamedTuple):
    """The nodes of a cluster; `best_fit`: its scheduler starts what fits with the largest first.

    `classes`: its DeviceClasses by name.
    """

    groups: tuple[NodeGroup, ...]
    best_fit: bool = False
    classes: tuple[tuple[str, DeviceClass], ...] = ()


@dataclass(frozen=True, slots=True)
class PodDemand:
    """Equal Pods that a workload starts on its cluster.

    `requests`: amounts above 0, of `pods` too. `quanta`: to what each of them is rounded, in any
    order, and where Pods of a higher `rank` come first. Other fields as of a PodGroup.
    """

    count: int
    requests: tuple[tuple[str, float], ...]
    quanta: tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]
    rank: tuple[float, ...]
    affinity: tuple[tuple[NodeSelectorTerm, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    per_node: bool = False
    claims: tuple[DeviceClaim, ...] = ()


class ProblemPolicy(NamedTuple):
    """A policy that a cluster may enforce; of the policies of one pool, at most one.

    `supplies`: (resource, amount) pairs. `value`: what enforcing it adds to the objective, never
    above 0: minus the cost of changing to it. `current`: it is enforced now. `nodes`: what nodes
    have while it is enforced, if that is known.
    """

    cluster: int
    pool: str
    name: str
    supplies: tuple[tuple[int, float], ...]
    current: bool = False
    value: float = 0.0
    nodes: Nodes | None = None

    def renumbered(self, number: Mapping[int, int]) -> Self:
        """Return the policy with other numbers of resources; those without a number are dropped."""
        supplies = (
            (number[resource], amount) for resource, amount in self.supplies if resource in number
        )
        return self._replace(supplies=tuple(supplies))


def largest_supplies(policies: Iterable[ProblemPolicy]) -> Iterator[tuple[int, float]]:
    """Yield (resource, amount): what each pool supplies of a resource at most."""
    most: dict[tuple[int, int, str], float] = {}
    for policy in policies:
        for resource, amount in policy.supplies:
            key = resource, policy.cluster, policy.pool
            most[key] = max(most.get(key, 0.0), amount)
    yield from ((resource, amount) for (resource, _, _), amount in most.items())


def common_divisor(amounts: Iterable[float]) -> float | None:
    """Return the largest amount that divides all positive amounts, 1 without any; None: none does.

    It is a fraction of which the denominator of each is at most 1,000.
    """
    positive = [amount for amount in amounts if amount > 0]
    exact = [Fraction(amount).limit_denominator(1_000) for amount in positive]
    if list(map(float, exact)) != positive:
        return None
    below = lcm(*(found.denominator for found in exact))
    return gcd(*(int(found * below) for found in exact)) / below if exact else 1.0


@dataclass(frozen=True, slots=True)
class ProblemWorkload:
    """A workload: on each cluster it runs on it takes `amount` of a resource of its kind.

    `requests`: further (kind, amount), taken from the cluster's resources of NO_DEVICE. `replicas`:
    clusters to run on at most. `workload_affinity`: of each set of names another must run on the
    same cluster. `workload_anti_affinity`: no other of these may. `current`: clusters (by number)
    where it is now; `move_cost`: what leaving one of them costs where it is `running`, part of the
    values of staying. `pods`: what it starts on a cluster, as far as it is known.
    """

    name: str
    app: str
    kind: str
    amount: float
    requests: tuple[tuple[str, float], ...] = ()
    replicas: int = 1
    priority: int = 0
    spread: tuple[TopologySpread, ...] = ()
    workload_affinity: tuple[tuple[str, ...], ...] = ()
    workload_anti_affinity: tuple[str, ...] = ()
    current: tuple[int, ...] = ()
    move_cost: float = 0.0
    running: tuple[int, ...] = ()
    pods: tuple[PodDemand, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """At most `most` of what assignments and policies use together, never below 0.

    An assignment uses `workloads` [workloads] + `assignments` [workloads, resources] where its
    resource is `counted` [resources]; a policy uses `policies` [policies].
    """

    name: str
    most: float
    counted: Bools
    workloads: Floats
    policies: Floats
    assignments: Floats | None = None

    def used(self, workload: Ints, resource: Ints) -> Floats:
        """Return what assignments use, given by workloads and resources."""
        amounts = self.workloads[workload]
        if self.assignments is not None:
            amounts = amounts + self.assignments[workload, resource]
        return np.where(self.counted[resource], amounts, 0.0)

    def of_assignments(self) -> Floats:
        """Return what every assignment uses [workloads, resources]; for small problems."""
        amounts = np.repeat(self.workloads[:, np.newaxis], len(self.counted), axis=1)
        whole = amounts if self.assignments is None else amounts + self.assignments
        return np.where(self.counted, whole, 0.0)

    def cut(
        self, policies: Sequence[int], workloads: Ints, resources: Ints, assignments: Floats | None
    ) -> Self:
        """Return the limit over some policies, workloads and resources.

        `assignments` [workloads, resources]: the part of the array of the same name.
        """
        return replace(
            self,
            counted=self.counted[resources],
            workloads=self.workloads[workloads],
            policies=self.policies[list(policies)],
            assignments=assignments,
        )


class CandidateAssignments(NamedTuple):
    """The usable assignments, workload by workload: numbers and value, [assignments] each."""

    workload: Ints
    resource: Ints
    cluster: Ints
    value: Floats


class Coefficients(NamedTuple):
    """A sparse matrix: variable `column` takes or supplies `amount` of `resource`."""

    resource: Ints
    column: Ints
    amount: Floats
