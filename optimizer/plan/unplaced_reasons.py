"""The workloads without all of their replicas, each with a reason and a message."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from dsf.api.plural import counted
from dsf.api.untrusted_text import listed
from optimizer.domain.arrays import Bools, Ints, members_by_key
from optimizer.domain.fleet import Fleet, Workload
from optimizer.domain.issue import PLANNED_ANYWAY_REASONS, TAKEN_REASONS
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.model.allocation import Allocation
from optimizer.model.predicates import PREDICATES, ResourceIndex, ineligible
from optimizer.model.problem import Problem, ProblemWorkload
from optimizer.model.rules import node_fit, violations
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Unplaced

_LACKS_ROOM = {
    "NoSupply",
    "NoExtraSupply",
    "NoNodeFits",
    "Fragmented",
    "NoCapacityLeft",
    "NoRoomLeft",
    "FewerReplicas",
}
"""The reasons that the parts of others can cause."""

_NODE_REASONS = {"NoNodeFits", "Fragmented"}
"""The reasons that a message explains by what a Pod looks for on a node."""

_TRIED = 4
"""Clusters with room, best first, of which it is asked whether their nodes have it in one piece."""

_SHOWN_OTHERS = 2
"""Parts of others that one message names."""

_SHOWN_USERS = 3
"""Workloads that one message names, which use the best place of another."""


def unplaced(
    request: OptimizeRequest, fleet: Fleet, problem: Problem, solution: Solution
) -> tuple[Unplaced, ...]:
    """Return the workloads of the request that lack replicas, each with the reason."""
    on: dict[str, set[str]] = {}
    for place in solution.decision.assignments:
        on.setdefault(place.workload, set()).add(place.cluster)
    issues = {
        issue.workload: issue
        for issue in fleet.issues
        if issue.workload and issue.reason not in PLANNED_ANYWAY_REASONS
    }
    others = [issue.message for issue in fleet.issues if issue.reason in TAKEN_REASONS]
    workloads = {workload.name: workload for workload in fleet.workloads}
    reasons = _Reasons(fleet, problem, solution)
    found: list[Unplaced] = []
    for name in (choice.name for choice in request.target_workloads):
        there = on.get(name, set())
        if name in issues and not there:
            issue = issues[name]
            found.append(Unplaced(workload=name, reason=issue.reason, message=issue.message))
        elif len(there) < workloads[name].replicas:
            reason, message = reasons.of(workloads[name], there)
            said = f"workload {name}: {message}{_of_others(reason, others)}"
            found.append(Unplaced(workload=name, reason=reason, message=said))
    return tuple(found)


def _of_others(reason: str, messages: Sequence[str]) -> str:
    """Return what others have of the clusters, if a workload lacks room."""
    if reason not in _LACKS_ROOM or not messages:
        return ""
    more = len(messages) - _SHOWN_OTHERS
    shown = "; ".join(f"{message}" for message in messages[:_SHOWN_OTHERS])
    return f"; {shown}" + (f"; the plan's issues name {more} more" if more > 0 else "")


@dataclass(frozen=True, eq=False)
class _Reasons:
    fleet: Fleet
    problem: Problem
    solution: Solution

    def of(self, workload: Workload, on: Collection[str]) -> tuple[str, str]:
        """Return why a workload that runs on these clusters does not run on more."""
        index = self.problem.workload_index.get(workload.name)
        if index is None:
            return self._impossible(workload)
        item, others = self.problem.workloads[index], self._elsewhere(index, on)
        if not on:
            return self._not_chosen(item, others)
        message = f"it runs on {len(on)} of {workload.replicas} clusters"
        if not len(others):
            return "FewerReplicas", f"{message}, and can run on no other"
        return "FewerReplicas", f"{message}; elsewhere {self._not_chosen(item, others)[1]}"

    def _elsewhere(self, number: int, on: Collection[str]) -> Ints:
        """Return a workload's usable resources on other clusters, the best first."""
        row = self.problem.values[number]
        clusters = [self.problem.cluster_index[name] for name in on]
        usable = ~np.isnan(row) & ~np.isin(self.problem.resource_cluster, clusters)
        (found,) = np.nonzero(usable)
        return found[np.argsort(-row[found], kind="stable")]

    def _not_chosen(self, item: ProblemWorkload, usable: Ints) -> tuple[str, str]:
        if self.solution.status == "NotSolved":
            why = "failed" if self.solution.failure else "found no placement within its limits"
            return "NotSolved", f"the solver {why}"
        number = self.problem.workload_index[item.name]
        if (best := self.problem.values[number, usable[0]]) < 0:
            message = f"its best score is {best:g}: placing it would lower the total"
            return "ScoresBelowZero", message
        if fragmented := self._fragmented(item):
            return "Fragmented", fragmented
        proven = self.solution.status == "Optimal"
        found = "the optimal placement" if proven else "the best placement found"
        fits = f"{counted(len(usable), 'place')} would fit it alone, but {found}"
        use = "uses those devices for others or enforces policies that supply none for it"
        taken = self._taken(self.problem.assignment(number, int(usable[0])))
        constraints = self._coupling_constraints(item)
        if not constraints:
            return "NoCapacityLeft", f"{fits} {use}{taken}"
        return "NoRoomLeft", (
            f"{fits} {use}, or {' or '.join(constraints)} forbids it{taken}; an explanation says"
            " which"
        )

    def _taken(self, best: Assignment) -> str:
        """Return which workloads use the best place of another; empty if none does."""
        there = self._on.get(best.cluster, ())
        users = [item.workload for item in there if item.device == best.device]
        if not users:
            return ""
        place = f"{best.device} of {best.cluster}" if best.device else best.cluster
        return f"; the best of them, {place}, has {listed(users, _SHOWN_USERS)}"

    def _fragmented(self, item: ProblemWorkload) -> str:
        """Return where there is room for a workload but no certain node; empty if it is not that.

        Says without which other workload there would be one, the one of the lowest value.
        """
        problem, number = self.problem, self.problem.workload_index[item.name]
        row = np.nan_to_num(problem.values[number], nan=-1.0)
        with_room = (
            at
            for at in np.argsort(-row, kind="stable").tolist()
            if row[at] >= 0 and problem.resources[at].cluster in problem.nodes
            if self._allocation.has_capacity(number, at)
        )
        for at in islice(with_room, _TRIED):
            wanted = problem.assignment(number, at)
            there = sorted(self._on.get(wanted.cluster, ()), key=problem.score)
            if broken := self._node_violations([*there, wanted]):
                alone = (
                    other.workload
                    for other in there
                    if not self._node_violations([*(i for i in there if i != other), wanted])
                )
                without = next(alone, "")
                remedy = f"; without workload {without} it would be" if without else ""
                return (
                    f"cluster {wanted.cluster} has enough for it in sum, but it is not certain"
                    f" that {broken[0].removesuffix(f' on cluster {wanted.cluster}')}{remedy}"
                )
        return ""

    def _node_violations(self, assignments: Sequence[Assignment]) -> tuple[str, ...]:
        decision = Decision(self.solution.decision.policies, tuple(assignments))
        return violations(self.problem, decision, [node_fit])

    @cached_property
    def _allocation(self) -> Allocation:
        return Allocation(self.problem, self.solution.decision)

    @cached_property
    def _on(self) -> dict[str, list[Assignment]]:
        assignments = self.solution.decision.assignments
        return members_by_key((item.cluster, item) for item in assignments)

    def _coupling_constraints(self, item: ProblemWorkload) -> list[str]:
        """Return the constraints, besides capacity, that couple the workload with others."""
        couplings = (
            ("spread", bool(item.spread)),
            ("workloadAffinity", bool(item.workload_affinity)),
            ("workloadAntiAffinity", self._any_anti_affinity),
            ("a limit", bool(self.problem.limits)),
        )
        return [name for name, there in couplings if there]

    @cached_property
    def _any_anti_affinity(self) -> bool:
        return any(item.workload_anti_affinity for item in self.problem.workloads)

    @cached_property
    def _index(self) -> ResourceIndex:
        return ResourceIndex(self.fleet)

    def _impossible(self, workload: Workload) -> tuple[str, str]:
        """Return the reason and the number of devices that each predicate rules out in turn."""
        wanted = f"{workload.amount:g} {workload.kind}"
        left = self._index.kind.get(workload.kind, self._index.none)
        if not left.any():
            return (
                "NoSupply",
                f"it requests {wanted}, and no candidate policy supplies {workload.kind}",
            )
        total, reason, said, why = int(left.sum()), "", list[str](), set[str]()
        open_to_it = left
        for name, found in ineligible(self._index, workload).items():
            blocked = int((left & found).sum())
            if blocked:
                reason = name
                why.add(name)
                open_to_it = left if name == "NoSupply" else open_to_it
                said.append(f"{blocked} {PREDICATES[name].says}")
                left = left & ~found
        if len(said) == 1 and reason == "NoSupply":
            return reason, f"it requests {wanted}; {self._most(open_to_it)}"
        message = f"of the {total} devices with {workload.kind}, {', '.join(said)}"
        if "NoSupply" in why:
            message += f"; it requests {wanted}, and {self._most(open_to_it)}"
        return (
            reason,
            f"{message}{self._missing_node(workload)}" if why & _NODE_REASONS else message,
        )

    def _missing_node(self, workload: Workload) -> str:
        """Return what its Pods look for on the first cluster whose nodes don't have it."""
        found = self._index.missing_nodes(self._index.pods[workload.name])
        at, missing = next((at, item) for at, item in enumerate(found) if item)
        cluster = self.fleet.clusters[self._index.resources[at].cluster].name
        return f"; a Pod looks for {missing.sought} on cluster {cluster}"

    def _most(self, among: Bools) -> str:
        most = np.where(among, self._index.most, -1.0)
        resource = self._index.resources[int(most.argmax())]
        cluster = self.fleet.clusters[resource.cluster].name
        device = f" of {resource.device}" if resource.device else ""
        return f"the most that a cluster can have is {most.max():g}{device} (cluster {cluster})"
