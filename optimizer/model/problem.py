"""The placement problem: numbered clusters, resources, policies and workloads, and their values.

It is made for large fleets: a candidate assignment (workload on resource) is an entry of an array,
never a Python object. Variables are numbered: first policies, then candidate assignments.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from optimizer.domain.arrays import Bools, FloatArray, Floats, Ints, members_by_key, narrow, widen
from optimizer.domain.solution import Assignment, Decision, NodeRows, PolicyEnforcement, Variable
from optimizer.model.parameters import (
    NO_DEVICE,
    CandidateAssignments,
    ClusterResource,
    Coefficients,
    Limit,
    Nodes,
    ProblemPolicy,
    ProblemWorkload,
)

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Problem:
    """The parameters of the integer program; the empty decision satisfies every rule.

    `values` [workloads, resources]: NaN where a workload can't run. A workload runs on resources of
    its kind alone, and only on a cluster that has a resource for each of its further requests.
    `base` [resources]: supplied without any policy. `labels`: by label key, each cluster's value,
    for `TopologySpread`. `priorities`: those that count although no workload may have them; what
    policies cost belongs to the last of all. `nodes`: by cluster, where its nodes are known.
    `node_rows`: the workloads and clusters of which `node_fit` has rows; None: of all.
    """

    clusters: tuple[str, ...]
    resources: tuple[ClusterResource, ...]
    policies: tuple[ProblemPolicy, ...]
    workloads: tuple[ProblemWorkload, ...]
    values: Floats
    base: Floats
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    priorities: tuple[int, ...] = ()
    nodes: Mapping[int, Nodes] = field(default_factory=dict)
    node_rows: NodeRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with compact arrays, without the properties derived from them."""
        return self._state(narrow)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields with arrays of float64."""
        self.__dict__.update(state)
        self.__dict__.update(self._state(widen))

    def _state(self, change: Callable[[FloatArray], FloatArray]) -> dict[str, Any]:
        """Return the fields with every array of assignments changed; limits still share arrays."""
        arrays = [item.assignments for item in self.limits if item.assignments is not None]
        changed = {id(array): change(array) for array in (self.values, *arrays)}
        state = {item.name: getattr(self, item.name) for item in fields(self)}
        limits = tuple(
            item
            if item.assignments is None
            else replace(item, assignments=cast("Floats", changed[id(item.assignments)]))
            for item in self.limits
        )
        return {**state, "values": changed[id(self.values)], "limits": limits}

    @property
    def size(self) -> int:
        """The number of variables."""
        return int(np.count_nonzero(~np.isnan(self.values))) + len(self.policies)

    @cached_property
    def tiers(self) -> tuple[int, ...]:
        """The priorities, highest first: a tier never loses anything to a later one."""
        own = {workload.priority for workload in self.workloads}
        return tuple(sorted(own.union(self.priorities), reverse=True))

    @cached_property
    def workload_tier(self) -> Ints:
        """The tier of each workload, as an index into `tiers`."""
        index = {priority: tier for tier, priority in enumerate(self.tiers)}
        return _ints(index[workload.priority] for workload in self.workloads)

    @cached_property
    def resource_cluster(self) -> Ints:
        """The cluster of each resource."""
        return _ints(resource.cluster for resource in self.resources)

    @cached_property
    def resources_on(self) -> list[list[int]]:
        """The resources of each cluster."""
        return _by_cluster(self.resource_cluster.tolist(), len(self.clusters))

    @cached_property
    def policies_on(self) -> list[list[int]]:
        """The policies of each cluster."""
        return _by_cluster((policy.cluster for policy in self.policies), len(self.clusters))

    @cached_property
    def pools(self) -> Mapping[tuple[int, str], list[int]]:
        """The policies of each pool, by cluster and the pool's name."""
        return members_by_key((item[:2], number) for number, item in enumerate(self.policies))

    @cached_property
    def assignments(self) -> CandidateAssignments:
        """The usable assignments; assignment i is variable `len(policies) + i`."""
        workload, resource = np.nonzero(~np.isnan(self.values))
        return CandidateAssignments(
            workload, resource, self.resource_cluster[resource], self.values[workload, resource]
        )

    def assignments_of(self, workload: int) -> Ints:
        """Return the numbers of a workload's usable assignments."""
        return np.arange(self._first_assignments[workload], self._first_assignments[workload + 1])

    @cached_property
    def _first_assignments(self) -> Ints:
        return np.searchsorted(self.assignments.workload, np.arange(len(self.workloads) + 1))

    @cached_property
    def column_cluster(self) -> Ints:
        """The cluster of each variable."""
        of_policies = _ints(policy.cluster for policy in self.policies)
        return np.concatenate([of_policies, self.assignments.cluster])

    @cached_property
    def supply(self) -> Coefficients:
        """What each policy supplies of each resource."""
        found = [
            (resource, column, amount)
            for column, policy in enumerate(self.policies)
            for resource, amount in policy.supplies
        ]
        return Coefficients(
            _ints(resource for resource, _, _ in found),
            _ints(column for _, column, _ in found),
            np.array([amount for _, _, amount in found], dtype=np.float64),
        )

    @cached_property
    def demand(self) -> Coefficients:
        """What each usable assignment takes of each resource, further requests included."""
        assignments, first = self.assignments, len(self.policies)
        columns = np.arange(first, first + len(assignments.workload))
        amounts = np.array([workload.amount for workload in self.workloads], dtype=np.float64)
        found = [Coefficients(assignments.resource, columns, amounts[assignments.workload])]
        for kind in sorted({kind for workload in self.workloads for kind, _ in workload.requests}):
            extra = np.array(
                [dict(workload.requests).get(kind, 0.0) for workload in self.workloads]
            )
            taking = np.nonzero(extra[assignments.workload] > 0)[0]
            resources = self._resources_of(kind)[assignments.cluster[taking]]
            found.append(
                Coefficients(resources, columns[taking], extra[assignments.workload[taking]])
            )
        return Coefficients(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def demand_of(self, workload: int, resource: int) -> list[tuple[int, float]]:
        """Return what an assignment takes, by resource: its amount and its further requests."""
        wanted, cluster = self.workloads[workload], self.resources[resource].cluster
        further = (
            (self.resource_index[ClusterResource(cluster, kind, NO_DEVICE)], amount)
            for kind, amount in wanted.requests
        )
        return [(resource, wanted.amount), *further]

    def _resources_of(self, kind: str) -> Ints:
        """Return each cluster's resource of a kind that has no devices, -1 where it has none."""
        missing = len(self.clusters) * [-1]
        for resource, item in enumerate(self.resources):
            if (item.kind, item.device) == (kind, NO_DEVICE):
                missing[item.cluster] = resource
        return _ints(missing)

    @cached_property
    def cluster_index(self) -> Mapping[str, int]:
        """Cluster numbers by name."""
        return {name: index for index, name in enumerate(self.clusters)}

    @cached_property
    def workload_index(self) -> Mapping[str, int]:
        """Workload numbers by name."""
        return {workload.name: index for index, workload in enumerate(self.workloads)}

    @cached_property
    def resource_index(self) -> Mapping[ClusterResource, int]:
        """Resource numbers."""
        return {resource: index for index, resource in enumerate(self.resources)}

    @cached_property
    def policy_index(self) -> Mapping[PolicyEnforcement, int]:
        """Policy numbers by cluster and policy."""
        return {self.enforcement(index): index for index in range(len(self.policies))}

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable by name, in the order of their numbers; for small problems."""
        pairs = zip(
            self.assignments.workload.tolist(), self.assignments.resource.tolist(), strict=True
        )
        policies = (self.enforcement(index) for index in range(len(self.policies)))
        return (*policies, *(self.assignment(*pair) for pair in pairs))

    def column(self, workload: int, resource: int) -> int:
        """Return the number of the variable of a usable assignment."""
        first, end = self._first_assignments[workload : workload + 2]
        own = self.assignments.resource[first:end]
        return len(self.policies) + int(first + np.searchsorted(own, resource))

    def enforcement(self, policy: int) -> PolicyEnforcement:
        """Return a policy by name."""
        found = self.policies[policy]
        return PolicyEnforcement(self.clusters[found.cluster], found.name)

    def assignment(self, workload: int, resource: int) -> Assignment:
        """Return an assignment by name."""
        found = self.resources[resource]
        return Assignment(self.workloads[workload].name, self.clusters[found.cluster], found.device)

    def indexes(self, assignment: Assignment) -> tuple[int, int] | None:
        """Return the workload and resource of an assignment; None if it is not a candidate."""
        workload, cluster = (
            self.workload_index.get(assignment.workload),
            self.cluster_index.get(assignment.cluster),
        )
        if workload is None or cluster is None:
            return None
        resource = self.resource_index.get(
            ClusterResource(cluster, self.workloads[workload].kind, assignment.device)
        )
        usable = resource is not None and not np.isnan(self.values[workload, resource])
        return (workload, resource) if resource is not None and usable else None

    def indexes_of(self, assignments: Iterable[Assignment]) -> list[tuple[int, int]]:
        """Return the workloads and resources of those assignments that the problem has."""
        return [found for item in assignments if (found := self.indexes(item)) is not None]

    def named(self, policies: Iterable[int], pairs: Iterable[tuple[int, int]]) -> Decision:
        """Return the decision with these policies and (workload, resource) pairs, in order."""
        return Decision(
            tuple(map(self.enforcement, sorted(policies))),
            tuple(self.assignment(*pair) for pair in sorted(pairs)),
        )

    def numbered(self, decision: Decision) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the policies and (workload, resource) pairs; assignments without one are left out.

        Raises KeyError for a policy that is not a candidate.
        """
        policies = [self.policy_index[item] for item in decision.policies]
        return policies, self.indexes_of(decision.assignments)

    def combined(self, decisions: Iterable[Decision]) -> Decision:
        """Return decisions about parts of the problem as one, in the order of the problem."""
        policies, pairs = zip(*map(self.numbered, decisions), strict=True)
        return self.named(chain.from_iterable(policies), chain.from_iterable(pairs))

    def score(self, assignment: Assignment) -> float:
        """Return the value of an assignment without the move cost that staying there saves.

        Raises KeyError if it is not a candidate.
        """
        found = self.indexes(assignment)
        if found is None:
            raise KeyError(assignment)
        workload = self.workloads[found[0]]
        stays = self.resources[found[1]].cluster in workload.running
        return float(self.values[found]) - (workload.move_cost if stays else 0.0)

    def weights(self, tier: int | None = None) -> Floats:
        """Return each variable's part of the objective, or of one tier's.

        What policies cost belongs to the last tier.
        """
        assignments, last = self.assignments, len(self.tiers) - 1
        policies = np.array([policy.value for policy in self.policies], dtype=np.float64)
        if tier is None:
            return np.concatenate([policies, assignments.value])
        of_assignments = np.where(
            self.workload_tier[assignments.workload] == tier, assignments.value, 0.0
        )
        return np.concatenate([policies if tier == last else 0 * policies, of_assignments])

    def decision(self, columns: Iterable[int]) -> Decision:
        """Return the decision that sets these variables, in the problem's order."""
        first, assignments = len(self.policies), self.assignments
        chosen = sorted(columns)
        taken = [column - first for column in chosen if column >= first]
        return Decision(
            tuple(self.enforcement(column) for column in chosen if column < first),
            tuple(
                self.assignment(int(assignments.workload[i]), int(assignments.resource[i]))
                for i in taken
            ),
        )

    def restricted(self, assignments: Bools, policies: Bools) -> "Problem":
        """Return the problem restricted to some assignments and policies.

        `assignments` [workloads, resources] and `policies` [policies] tell which of them stay.

        Workloads and resources that are left without an assignment go; clusters keep their numbers.
        """
        known = ~np.isnan(self.values)
        usable = assignments & known
        workloads, resources = np.nonzero(usable.any(axis=1))[0], np.nonzero(usable.any(axis=0))[0]
        values = _corner(self.values, workloads, resources)
        if np.count_nonzero(usable) < np.count_nonzero(known):
            values = np.where(_corner(usable, workloads, resources), values, np.nan)
        return self._cropped(np.nonzero(policies)[0].tolist(), workloads, resources, values)

    def part(self, policies: Sequence[int], workloads: Ints, resources: Ints) -> "Problem":
        """Return the problem of these policies and of a few assignments.

        Assignment i is workload `workloads[i]` on resource `resources[i]`.
        """
        kept_workloads, rows = np.unique(workloads, return_inverse=True)
        kept_resources, columns = np.unique(resources, return_inverse=True)
        values = np.full((len(kept_workloads), len(kept_resources)), np.nan)
        values[rows, columns] = self.values[workloads, resources]
        return self._cropped(policies, kept_workloads, kept_resources, values)

    def _cropped(
        self, policies: Sequence[int], workloads: Ints, resources: Ints, values: Floats
    ) -> "Problem":
        """Return the problem of these values [workloads, resources].

        The resources that further requests take from are kept too.
        """
        kept = tuple(self.workloads[workload] for workload in workloads.tolist())
        every = np.unique(np.concatenate([resources, self._resources_of_requests(kept, resources)]))
        if len(every) > len(resources):
            widen = np.full((len(workloads), len(every)), np.nan)
            widen[:, np.searchsorted(every, resources)] = values
            values = widen
        number = {resource: index for index, resource in enumerate(every.tolist())}
        return replace(
            self,
            resources=tuple(self.resources[resource] for resource in number),
            policies=tuple(self.policies[policy].renumbered(number) for policy in policies),
            workloads=kept,
            values=values,
            base=self.base[every],
            limits=tuple(self._cut_limits(policies, workloads, every)),
        )

    def _cut_limits(
        self, policies: Sequence[int], workloads: Ints, resources: Ints
    ) -> Iterator[Limit]:
        """Yield the limits of the part; limits that shared an array share its part."""
        cut: dict[int, Floats] = {}
        for item in self.limits:
            if item.assignments is not None and id(item.assignments) not in cut:
                cut[id(item.assignments)] = _corner(item.assignments, workloads, resources)
            assignments = None if item.assignments is None else cut[id(item.assignments)]
            yield item.cut(policies, workloads, resources, assignments)

    def _resources_of_requests(self, workloads: Iterable[ProblemWorkload], resources: Ints) -> Ints:
        kinds = {kind for workload in workloads for kind, _ in workload.requests}
        clusters = np.unique(self.resource_cluster[resources]).tolist() if kinds else []
        wanted = (
            ClusterResource(cluster, kind, NO_DEVICE)
            for cluster in clusters
            for kind in sorted(kinds)
        )
        return _ints(
            self.resource_index[resource] for resource in wanted if resource in self.resource_index
        )


def _corner(array: NDArray[T], workloads: Ints, resources: Ints) -> NDArray[T]:
    """Return the rows and columns of an array; the array itself where these are all."""
    whole = array.shape == (len(workloads), len(resources))
    return array if whole else array[np.ix_(workloads, resources)]


def _by_cluster(clusters: Iterable[int], count: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for number, cluster in enumerate(clusters):
        found[cluster].append(number)
    return found


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)
