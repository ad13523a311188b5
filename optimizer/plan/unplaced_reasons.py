"""The workloads without all of their replicas, each with a reason and a message."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from dsf.api.untrusted_text import counted, listed
from optimizer.domain.arrays import Bools, Ints, members_by_key
from optimizer.domain.fleet import Fleet, Workload
from optimizer.domain.issue import PLANNED_ANYWAY_REASONS, TakenIssue, withheld
from optimizer.domain.nodes import GPU_KIND, WHOLE_GPU
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.model.allocation import Allocation
from optimizer.model.formulate import decided_problem
from optimizer.model.nodes.undivided_gpus import undivided_gpus
from optimizer.model.parameters import ClusterResource, PodDemand, ProblemWorkload
from optimizer.model.predicates import PREDICATES, ResourceIndex, ineligible
from optimizer.model.problem import Problem
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

_OF_CLUSTER = (
    *("NotSelectable", "NotSeen", "NotPinned", "Excluded", "Drained", "Affinity", "AntiAffinity"),
    "NoExtraSupply",
)
"""The reasons that are the same for every device of a cluster."""

_TRIED = 4
"""Clusters with room, best first, of which it is asked whether their nodes have it in one piece."""

_SHOWN_OTHERS = 2
"""Parts of others that one message names."""

_SHOWN_NAMES = 3
"""Workloads that use the best place of another, or clusters, that one message names."""


def unplaced(
    request: OptimizeRequest,
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    recorded: Iterable[Unplaced] = (),
) -> tuple[Unplaced, ...]:
    """Return the workloads of the request that lack replicas, each with the reason.

    `recorded`: what the plan says that is restored, if it is one.
    """
    known = {item.workload: item for item in recorded}
    on: dict[str, set[str]] = {}
    for place in solution.decision.assignments:
        on.setdefault(place.workload, set()).add(place.cluster)
    issues = {
        issue.workload: issue
        for issue in fleet.issues
        if issue.workload and issue.reason not in PLANNED_ANYWAY_REASONS
    }
    others = [issue for issue in fleet.issues if isinstance(issue, TakenIssue)]
    workloads = {workload.name: workload for workload in fleet.workloads}
    reasons = _Reasons(fleet, problem, solution)
    found: list[Unplaced] = []
    for name in (choice.name for choice in request.target_workloads):
        there = on.get(name, set())
        if name in issues and not there:
            issue = issues[name]
            found.append(Unplaced(workload=name, reason=issue.reason, message=issue.message))
        elif len(there) < workloads[name].replicas and name in known:
            found.append(known[name])
        elif len(there) < workloads[name].replicas:
            reason, message = reasons.of(workloads[name], there)
            message += reasons.ruled_out(workloads[name], there)
            said = f"workload {name}: {message}{_of_others(reason, workloads[name], others)}"
            found.append(Unplaced(workload=name, reason=reason, message=said))
    return tuple(found)


def _of_others(reason: str, workload: Workload, issues: Iterable[TakenIssue]) -> str:
    """Return what others have of the clusters that a workload asks for, if it lacks room."""
    asked = {workload.kind} | (set() if reason == "NoSupply" else {*dict(workload.requests)})
    messages = [
        item.message
        for item in issues
        if item.concerns(asked, workload.devices)
        if not workload.clusters or item.cluster in workload.clusters
    ]
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

    def ruled_out(self, workload: Workload, on: Collection[str]) -> str:
        """Return where it is pinned, what is drained, and on which others it lacks only a score.

        A cluster that the decision leaves alone has enough, as a predicate says otherwise. Where
        the workload can run nowhere, the reason counts what is drained.
        """
        if self.solution.status == "NotSolved":
            return ""
        found = ineligible(self._index, workload)
        alone = np.sum([*found.values()], axis=0) == 1
        some = workload.name in self.problem.workload_index
        drained = self._clusters(found["Drained"]) if some else ()
        said = f"; it may run only on {listed(workload.clusters, _SHOWN_NAMES)}"
        said = said if workload.clusters else ""
        if fits := int((found["NotPinned"] & alone).sum()):
            said += f", and {counted(fits, 'place')} elsewhere would fit it alone"
        said += f"; drained: {listed(drained, _SHOWN_NAMES)}" if drained else ""
        names = dict.fromkeys(
            cluster
            for at in np.flatnonzero(found["NoUsableScore"] & alone).tolist()
            if (cluster := self.fleet.clusters[self._index.resources[at].cluster].name) not in on
            if cluster not in self._decided_on or self._fits_in_sum(workload.name, at)
        )
        if not names:
            return said
        where = f"{counted(len(names), 'cluster')} ({listed(names, _SHOWN_NAMES)})"
        enough = f"on {where} there is enough for it in sum, but no usable score (see the issues)"
        return f"{said}; {enough}"

    def _clusters(self, resources: Bools) -> list[str]:
        """Return the names of the clusters of resources."""
        numbers = dict.fromkeys(self._index.cluster[resources].tolist())
        return [self.fleet.clusters[number].name for number in numbers]

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
        best = self.problem.values[number, usable[0]]
        if best < 0 or (best == 0 and self._leaves_alone(usable)):
            lower = (
                "placing it would lower the total" if best else "no place is worth more than none"
            )
            return "ScoresBelowZero", f"its best score is {best:g}: {lower}"
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

    def _leaves_alone(self, usable: Ints) -> bool:
        """Tell whether the decision has nothing on the cluster of one of these resources."""
        clusters = self.problem.resource_cluster[usable].tolist()
        return not self._decided_on.issuperset(self.problem.clusters[at] for at in clusters)

    def _taken(self, best: Assignment) -> str:
        """Return which workloads use the best place of another; empty if none does."""
        there = self._on.get(best.cluster, ())
        users = [item.workload for item in there if item.device == best.device]
        if not users:
            return ""
        place = f"{best.device} of {best.cluster}" if best.device else best.cluster
        return f"; the best of them, {place}, has {listed(users, _SHOWN_NAMES)}"

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

    def _fits_in_sum(self, workload: str, resource: int) -> bool:
        number = self._everything.problem.workload_index[workload]
        return self._everything.has_capacity(number, resource)

    @cached_property
    def _everything(self) -> Allocation:
        """The decision on all resources of the fleet, those without a usable score included."""
        decision = self.solution.decision
        return Allocation(decided_problem(self.fleet, decision), decision)

    @cached_property
    def _decided_on(self) -> set[str]:
        decision = self.solution.decision
        used = {item.cluster for item in decision.assignments}
        return used | {item.cluster for item in decision.policies}

    @cached_property
    def _on(self) -> dict[str, list[Assignment]]:
        assignments = self.solution.decision.assignments
        return members_by_key((item.cluster, item) for item in assignments)

    def _coupling_constraints(self, item: ProblemWorkload) -> list[str]:
        """Return the constraints, besides capacity, that couple the workload with others."""
        workload = self._workloads[item.name]
        couplings = (
            ("spread", bool(item.spread)),
            ("workloadAffinity", bool(workload.workload_affinity)),
            ("togetherWith", bool(workload.together_with)),
            ("workloadAntiAffinity", "workload_anti_affinity" in self._apart),
            ("apartFrom", "apart_from" in self._apart),
            ("a limit", bool(self.problem.limits)),
        )
        return [name for name, there in couplings if there]

    @cached_property
    def _workloads(self) -> dict[str, Workload]:
        return {item.name: item for item in self.fleet.workloads}

    @cached_property
    def _apart(self) -> set[str]:
        """The fields by which any workload shares no cluster with others."""
        fields = ("workload_anti_affinity", "apart_from")
        return {name for name in fields if any(getattr(i, name) for i in self.fleet.workloads)}

    @cached_property
    def _index(self) -> ResourceIndex:
        return ResourceIndex(self.fleet)

    def _impossible(self, workload: Workload) -> tuple[str, str]:
        """Return the reason and the number of devices that each predicate rules out in turn."""
        wanted = f"{workload.amount:g} {workload.kind}"
        left = self._index.kind.get(workload.kind, self._index.none)
        named = {item.name for item in self.fleet.clusters} & {*workload.clusters}
        if not (left & self._index.named(named) if named else left).any():
            return "NoSupply", f"it requests {wanted}, and {self._lacking(workload.kind, named)}"
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
        undivided = self._undivided(workload)
        if len(said) == 1 and reason == "NoSupply":
            return reason, f"it requests {wanted}; {self._most(open_to_it)}{undivided}"
        message = f"of the {total} devices with {workload.kind}, {', '.join(said)}"
        if "NoSupply" in why:
            message += f"; it requests {wanted}, and {self._most(open_to_it)}"
        message += self._missing_node(workload) if why & _NODE_REASONS else ""
        return reason, f"{message}{undivided}"

    def _lacking(self, kind: str, named: Collection[str]) -> str:
        """Return that nothing, or nothing of the clusters that are named, has any of a kind."""
        cluster = "no cluster that it names" if named else "no cluster"
        taken = (item for item in self.fleet.issues if isinstance(item, TakenIssue))
        there = (item for item in taken if not named or item.cluster in named)
        if any(item.concerns({kind}, ()) for item in there):
            return f"{cluster} has {kind} free"
        return f"{cluster if named else 'no candidate policy'} supplies {kind}"

    def _missing_node(self, workload: Workload) -> str:
        """Return what its Pods look for on the first cluster whose nodes don't have it."""
        found = self._index.missing_nodes(self._index.pods[workload.name])
        at, missing = next((at, item) for at, item in enumerate(found) if item)
        cluster = self.fleet.clusters[self._index.resources[at].cluster].name
        return f"; a Pod looks for {missing.sought} on cluster {cluster}"

    def _undivided(self, workload: Workload) -> str:
        """Return which cluster it may use has whole GPUs free that no policy supplies, if any."""
        if workload.kind != GPU_KIND or not {WHOLE_GPU}.issuperset(workload.devices):
            return ""
        index, found = self._index, ineligible(self._index, workload)
        usable = index.kind[GPU_KIND] & ~np.any([found[name] for name in _OF_CLUSTER], axis=0)
        for at in dict.fromkeys(index.cluster[usable].tolist()):
            cluster = self.fleet.clusters[at]
            whole = index.number.get(ClusterResource(at, GPU_KIND, WHOLE_GPU))
            enough = whole is not None and index.most[whole] >= workload.amount
            if enough or GPU_KIND in {supply.kind for supply in cluster.base}:
                continue
            key = at, index.pods[workload.name]
            if key not in self._free:
                self._free[key] = undivided_gpus(cluster, key[1])
            if free := self._free[key]:
                have = f"{counted(int(free), 'whole GPU')} free, which count only with a policy"
                return f"; nodes of cluster {cluster.name} have {have} that leaves them whole"
        return ""

    @cached_property
    def _free(self) -> dict[tuple[int, tuple[PodDemand, ...]], float]:
        return {}

    def _most(self, among: Bools) -> str:
        most = np.where(among, self._index.most, -1.0)
        resource = self._index.resources[int(most.argmax())]
        cluster = self.fleet.clusters[resource.cluster].name
        device = f" of {resource.device}" if resource.device else ""
        free, less = float(most.max()), withheld(self.fleet.issues, cluster)
        if more := less.get((resource.kind, resource.device), 0.0):
            cluster += f"; {free + more:g} without what others hold"
        return f"the most that a cluster can have is {free:g}{device} (cluster {cluster})"
