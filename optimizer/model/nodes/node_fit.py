"""Whether the Pods of workloads find nodes: conditions that are linear in what else is assigned.

kube-scheduler takes Pods in an order that nobody knows, and for each any node that it fits, so a
Pod stays Pending exactly if in the end every node that could take it lacks one of its resources.
With free_nr on node n (allocatable less what is taken), a request g_r, and Pods j with requests
d_jr, node n is blocked only if for some resource r the Pods on it sum to more than free_nr - g_r.

Amounts are rounded to a quantum q_r that divides g_r: d_jr up, free_nr down. That never makes a
blocked node free, and gives the smallest amount that blocks:

    cost_nr = floor(free_nr / q_r) q_r - g_r + q_r

A Pod j that runs on n brings n its dominant share of that amount (A. Ghodsi et al., "Dominant
Resource Fairness", NSDI 2011), and never more than the whole node:

    share_jn = min(1, max_r d_jr / cost_nr)

Devices that claims of j take are one more amount: their part of what blocks n (`device_fit`). If n
is blocked, the shares of the Pods on n sum to 1 or more, because they do for the resource
that is lacking. Weigh nodes by any u_n > 0. A Pod runs on one node, so if all nodes are blocked

    sum_n u_n  <=  sum_n u_n sum_{j on n} share_jn  <=  sum_j max_n u_n share_jn

Hence: if the loads max_n u_n share_jn of all others sum to less than sum_n u_n, the Pod finds a
node in any order. With one resource, u_n = cost_n makes that the exact count of amounts. Pods that
run already and stay, and Pods of DaemonSets, load their own nodes instead of the worst one. On a
single node the condition is that each resource suffices, which is exact.

A cluster whose scheduler packs (`best_fit`) starts what fits in one order, the largest Pods first:
there only Pods that are not smaller count as others. If each size divides the next one and there
is one resource, that is exactly whether any assignment to nodes exists: size g needs
sum_j floor(d_j / g) <= sum_n floor(free_n / g) over the Pods that are not smaller.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, inf, isinf
from typing import NamedTuple, cast

import numpy as np

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import UntrustedName, counted, joined
from dsf.kube.selectors import Operator, Requirement
from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.nodes import PODS, Amounts, NodeGroup, NodeSelectorTerm
from optimizer.model.nodes.device_fit import device_loads
from optimizer.model.nodes.pod_demands import SAME
from optimizer.model.parameters import Nodes, PodDemand, ProblemWorkload

_FINEST = 64.0
"""Quanta of a request at most in which loads are counted, so that coefficients stay small."""

_SHOWN = 5
"""Amounts that a sentence names."""

_DEVICE_MARGIN = 0.05
"""By how much of an own Pod's load those of devices stay below what blocks a node."""

_MARGIN = 0.5
"""By how many quanta loads stay below their sum: less than one, and more than solvers err."""


class NodeCondition(NamedTuple):
    """A workload is sure to start only if the loads of the others sum to at most `most`.

    `loads` [workloads], 0 for itself. `most` below 0: not even alone. `sought`: what one of its
    Pods has to find, in words. `possible`: some choice of nodes may start them all.
    """

    loads: Floats
    most: float
    sought: str
    possible: bool = True


class NodeFit:
    """The nodes of a cluster, by number, and the Pods of the workloads that may run on it."""

    def __init__(self, nodes: Nodes, cluster: int, workloads: Sequence[ProblemWorkload]) -> None:
        self._nodes, self._groups = nodes, nodes.groups
        pods = [(at, pod) for at, item in enumerate(workloads) for pod in item.pods]
        self._pods, self._of = [pod for _, pod in pods], np.array([at for at, _ in pods], np.int64)
        self._names = sorted({name for pod in self._pods for name, _ in pod.requests})
        self._runs = [cluster in item.current for item in workloads]
        self._count = np.array([group.count for group in self._groups], np.float64)
        self._free = self._amounts(group.free for group in self._groups)
        self._held = self._amounts_held([item.name for item in workloads])
        self._demand = self._amounts(dict(pod.requests) for pod in self._pods)
        shape = len(pods), len(self._groups)
        accepted = [accepts(group, pod) for pod in self._pods for group in self._groups]
        self._accepted: Bools = np.array(accepted, np.bool_).reshape(shape)
        enough = self._demand[:, None] <= self._free[None] * (1 + SAME)
        self._can: Bools = self._accepted & enough.all(axis=2)
        self._loads = device_loads(nodes, self._pods)
        for at, loads in self._loads.items():
            self._can[at] &= np.isfinite(loads[at])
        self._daemon = np.array([pod.per_node for pod in self._pods], np.bool_)
        self._number = np.array([self._starting(at) for at in range(len(pods))], np.float64)

    def conditions(self, workload: int) -> Iterator[NodeCondition]:
        """Yield what lets each Pod of a workload find a node; nothing if it runs there already."""
        for at in () if self._runs[workload] else np.flatnonzero(self._of == workload).tolist():
            own: Ints = np.flatnonzero(self._can[at])
            if self._daemon[at]:
                for group in np.flatnonzero(self._accepted[at]).tolist():
                    yield from self._on_one_node(at, group)
            elif self._number[at] and self._count[own].sum() == 1:
                yield from self._on_one_node(at, int(own[0]))
            elif self._number[at]:
                yield self._on_nodes(at, own)

    def _on_one_node(self, at: int, group: int) -> Iterator[NodeCondition]:
        """Yield that each resource of one node suffices."""
        number = self._others(at) * self._can[:, group]
        number[at] = self._number[at]
        amounts = self._by_workload(number[:, None] * self._demand) + self._held[:, group]
        for resource in np.flatnonzero(self._demand[at]).tolist():
            size, free = self._demand[at, resource], self._free[group, resource]
            if not np.isinf(free):
                yield self._condition(at, amounts[:, resource] / size, free / size + SAME)
        if at in self._loads:
            loads, own = self._loads[at][:, group], float(self._loads[at][at, group])
            parts = np.zeros(len(loads)) if isinf(own) else number * loads / own
            most = -1.0 if isinf(own) else 1 / own + 1 - _DEVICE_MARGIN
            yield self._condition(at, self._by_workload(parts), most)

    def _on_nodes(self, at: int, own: Ints) -> NodeCondition:
        """Return that the loads of the others are less than what blocks every node."""
        asked = np.flatnonzero(self._demand[at])
        size, free = self._demand[at, asked], self._free[np.ix_(own, asked)]
        quanta = np.array([self._quantum(at, resource) for resource in asked.tolist()])
        cost = (np.floor(free / quanta + SAME) + 1) * quanta - size
        fitting = (cost / size).min(axis=1)
        blocking = self._loads[at][:, own] if at in self._loads else np.zeros(1)
        if at in self._loads:
            fitting = np.minimum(fitting, 1 / blocking[at])
        weights = fitting * min(float((size / quanta).max()), _FINEST)
        if np.isinf(weights).any() or not len(own):
            return self._condition(at, np.zeros(len(self._runs)), inf if len(own) else -1.0)
        shares = np.maximum(_shares(self._demand[:, asked][:, None], quanta, cost), blocking)
        on = shares * weights * self._can[:, own]
        daemons = self._daemon * (on @ self._count[own])
        each = np.where(self._daemon, daemons, on.max(axis=1))
        held = _shares(self._held[:, own][:, :, asked], quanta, cost) * weights
        loads = self._by_workload(self._others(at) * each) + held @ self._count[own]
        most = float(self._count[own] @ weights) + float(on[at].max()) - _MARGIN
        return self._condition(at, loads, most)

    def _condition(self, at: int, loads: Floats, most: float) -> NodeCondition:
        """Return the condition without the loads of the workload's own Pods."""
        workload = int(self._of[at])
        most, loads[workload] = most - float(loads[workload]), 0.0
        possible = most >= 0 or self._possible(at)
        # Equal Pods alone fill the nodes in any order, whatever weights and quanta say.
        if possible and at not in self._loads and (self._of == workload).sum() == 1:
            most = max(most, 0.0)
        return NodeCondition(loads, most, self._sought(at), possible)

    def _possible(self, at: int) -> bool:
        """Tell whether nodes have as many slots of a Pod's size as its workload's Pods take.

        A Pod that runs only where the first one can takes as many as it is times as large: of each
        resource, and of all of them. That is necessary, and exact for equal Pods without claims.
        """
        if self._daemon[at]:
            return bool(self._can[at][self._accepted[at]].all())
        own = (self._of == self._of[at]) & ~self._daemon
        own &= (self._can <= self._can[at]).all(axis=1)
        taken = self._number[own] @ self._slots(at, self._demand[own])
        there = self._can[at]
        return bool((taken <= self._count[there] @ self._slots(at, self._free[there])).all())

    def _slots(self, at: int, amounts: Floats) -> Floats:
        """Return how many Pods amounts [.., resources] are worth, each and together [.., 1+]."""
        asked = self._demand[at] > 0
        slots = np.floor(amounts[:, asked] / self._demand[at, asked] + SAME)
        return np.column_stack([slots, slots.min(axis=1)])

    def _sought(self, at: int) -> str:
        """Return what a Pod looks for, with how many nodes have it, or what is the most."""
        pod = self._pods[at]
        parts = _in_words(pod.requests), *_claimed(pod)
        told = joined((f"{part}" for part in parts if part), _SHOWN)
        asked = f"{told or 'room for a Pod'} free"
        nodes = int(self._count[self._can[at]].sum())
        if nodes:
            return (
                f"one of {nodes} nodes with {asked}" if nodes > 1 else f"the one node with {asked}"
            )
        accepted, needed = self._free[self._accepted[at]], self._demand[at]
        if not len(accepted):
            none = f"there is none{self._unpublished(pod)}"
            return f"a node with {asked} that it selects and tolerates ({none})"
        if at in self._loads and np.isinf(self._loads[at][at]).all():
            return f"a node with {asked} (no node has such devices free)"
        lacking = np.flatnonzero((accepted < needed).all(axis=0)).tolist()
        most = _in_words((self._names[i], float(accepted[:, i].max())) for i in lacking)
        return f"a node with {asked} (the most on one is {most or 'less of all together'})"

    def _unpublished(self, pod: PodDemand) -> str:
        """Return the labels that a Pod selects by and no node has in the inventory."""
        terms = {term for terms in pod.affinity for term in terms}
        known = {key for group in self._groups for key in group.labels}
        needed = {term.key for term in terms if term.operator not in ("NotIn", "DoesNotExist")}
        if not (unknown := sorted(needed - known)):
            return ""
        named = joined((f"{UntrustedName(key)}" for key in unknown), _SHOWN)
        return f"; its inventory has no label {named}: see --inventory-node-labels of the agent"

    def _others(self, at: int) -> Floats:
        """Return how many of each kind of Pod may come before one [pods], itself included."""
        if not self._nodes.best_fit:
            return self._number.copy()
        larger = [pod.rank >= self._pods[at].rank for pod in self._pods]
        return self._number * np.array(larger, np.bool_)

    def _starting(self, at: int) -> int:
        """Return how many Pods start: of a workload that runs those that no node holds."""
        pod, workload = self._pods[at], int(self._of[at])
        if pod.per_node or not self._runs[workload]:
            return int(pod.per_node) or pod.count
        own = self._of == workload
        each = np.array([item.count for item in self._pods])[own]
        asked, held = each @ self._demand[own], self._count @ self._held[workload]
        there = np.min(held[asked > 0] / asked[asked > 0], initial=1.0)
        return ceil((1.0 - float(there)) * pod.count - SAME)

    def _quantum(self, at: int, resource: int) -> float:
        return dict(self._pods[at].quanta[self._nodes.best_fit])[self._names[resource]]

    def _amounts(self, rows: Iterable[Amounts]) -> Floats:
        """Return amounts as an array [rows, resources]."""
        found = [[row.get(name, 0.0) for name in self._names] for row in rows]
        return np.array(found, np.float64).reshape(len(found), len(self._names))

    def _amounts_held(self, names: Sequence[str]) -> Floats:
        """Return what workloads hold that run now and may stay [workloads, groups, resources]."""
        number = {name: at for at, name in enumerate(names) if self._runs[at]}
        found = np.zeros((len(names), len(self._groups), len(self._names)))
        for at, group in enumerate(self._groups):
            for name, amounts in group.held:
                if name in number:
                    found[number[name], at] += self._amounts([amounts])[0]
        return found

    def _by_workload(self, values: Floats) -> Floats:
        """Return the sums over the Pods of each workload."""
        found = np.zeros((len(self._runs), *values.shape[1:]))
        np.add.at(found, self._of, values)
        return found


def _shares(amounts: Floats, quanta: Floats, cost: Floats) -> Floats:
    """Return the largest part that amounts [.., resources] are of what blocks a node, at most 1."""
    rounded = np.ceil(amounts / quanta - SAME) * quanta
    return np.asarray(np.minimum(1.0, (rounded / cost).max(axis=-1)))


def _claimed(pod: PodDemand) -> Iterator[str]:
    """Yield what a Pod claims, such as `1 device of class mig.nvidia.com`."""
    for request in (request for claim in pod.claims for request in claim.requests):
        number = "all devices" if request[0].every else counted(request[0].count, "device")
        yield f"{number} of class {UntrustedName(request[0].device_class)}"


def _in_words(amounts: Iterable[tuple[str, float]]) -> str:
    """Return amounts, such as `4 nvidia.com/gpu, 16Gi memory`; one Pod is not worth a word."""
    told = [(name, amount) for name, amount in amounts if (name, amount) != (PODS, 1.0)]
    return joined((f"{format_quantity(much)} {UntrustedName(name)}" for name, much in told), _SHOWN)


def accepts(group: NodeGroup, pod: PodDemand) -> bool:
    """Tell whether labels and taints of nodes let a Pod run there."""
    tolerated = (any(i.matches(taint) for i in pod.tolerations) for taint in group.taints)
    return all(tolerated) and (
        not pod.affinity
        or any(all(_matches(item, group.labels) for item in term) for term in pod.affinity)
    )


def _matches(term: NodeSelectorTerm, labels: Mapping[str, str]) -> bool:
    operator = cast("Operator", term.operator)
    return Requirement(term.key, operator, frozenset(term.values)).matches(labels)


class FreedOnNode(NamedTuple):
    """What others would have to free on one node of a cluster for a Pod to fit there.

    `share`: sum over resources of what is freed per what the Pod requests. `group`: the number of
    the node's group. `node`: its name; empty where it is not known.
    """

    share: float
    group: int
    node: str
    amounts: tuple[tuple[str, float], ...]

    @property
    def words(self) -> str:
        """The amounts, such as `2 nvidia.com/gpu`."""
        return _in_words(self.amounts)


def least_freed(nodes: Nodes, pods: tuple[PodDemand, ...]) -> FreedOnNode | None:
    """Return the least that makes room on a node for a workload of one Pod.

    None where a node has room already, or nothing that others hold would be enough.
    """
    if [pod.count for pod in pods] != [1] or pods[0].claims:
        return None
    (pod,), found = pods, list[FreedOnNode]()
    for at, group in enumerate(nodes.groups):
        free, taken = group.free, group.taken
        lack = [(name, much - free.get(name, 0.0)) for name, much in pod.requests]
        lack = [(name, much) for name, much in lack if much > 0]
        if accepts(group, pod) and all(much <= taken.get(name, 0.0) for name, much in lack):
            share = sum(much / dict(pod.requests)[name] for name, much in lack)
            found.append(FreedOnNode(share, at, next(iter(group.names), ""), tuple(lack)))
    least = min(found, default=None)
    return least if least and least.amounts else None


def missing_node(nodes: Nodes, pods: tuple[PodDemand, ...]) -> NodeCondition | None:
    """Return what Pods are not sure of even where nothing of the request runs, if anything.

    What they can't have comes first.
    """
    alone = ProblemWorkload("", "", "", 0.0, pods=pods)
    lacking = (item for item in NodeFit(nodes, -1, [alone]).conditions(0) if item.most < 0)
    return min(lacking, key=lambda item: item.possible, default=None)
