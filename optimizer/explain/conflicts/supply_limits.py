"""Limits of what clusters supply, and repairs that add supply, GPUs, or a layout of GPUs.

Where the policies of a cluster are generated from its GPUs, another GPU can be divided like one of
those that are there. It supplies the devices of that layout whichever policy is enforced, because a
layout is chosen for each GPU independently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import ceil
from typing import ClassVar

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import UntrustedName, counted
from optimizer.candidates.further_layouts import FurtherLayout, gpu_names
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, ProfileCounts, Supply, Workload
from optimizer.domain.mig.gpu_pools import device_counts
from optimizer.domain.nodes import GPU_KIND, WHOLE_GPU, kind_and_device
from optimizer.explain.conflicts.fleet_changes import (
    LimitChange,
    with_candidates,
    with_cluster,
    with_freed_node,
    with_supplies,
)
from optimizer.explain.conflicts.limits import GIVEN_UP, RelaxableLimit, Sizing, delivered_scores
from optimizer.model.nodes.node_fit import FreedOnNode
from optimizer.model.nodes.pod_demands import pod_demands
from optimizer.model.nodes.undivided_gpus import undivided_gpus
from optimizer.model.parameters import common_divisor

MAX_STEPS = 2**12
"""Steps in which a supply is sized: an amount is exact to a 4096th of what workloads can use."""

_FREED = 0.01
"""Size of freeing a GPU for another layout: little, because nothing is bought or given up."""


@dataclass(frozen=True, slots=True, eq=False)
class AddedSupply(LimitChange):
    """More of a device on a cluster, available whichever policy the cluster enforces."""

    cluster: str
    supply: Supply


@dataclass(frozen=True, eq=False)
class SuppliedCapacity(RelaxableLimit):
    """What a cluster supplies of a device at most."""

    cluster: str
    kind: str
    device: str

    sized: ClassVar[bool] = True

    @property
    def resource(self) -> tuple[str, str, str]:
        """Cluster, kind and device."""
        return self.cluster, self.kind, self.device

    @property
    def _prefix(self) -> str:
        """The prefix of the candidates that stand for steps; no Policy has a slash in its name."""
        return f"added/{self.kind}/{self.device}/"

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the cluster has enough of the device for all workloads."""
        enough = Supply(self.kind, self.device, useful_amount(fleet, self.kind))
        return with_supplies(fleet, self.cluster, (enough,))

    def priced(self, fleet: Fleet, price: float) -> Fleet:
        """Return the fleet with steps of more supply, as candidates that have a cost."""
        total = useful_amount(fleet, self.kind)
        steps = (
            CandidatePolicy(
                f"{self._prefix}{number}",
                (Supply(self.kind, self.device, amount),),
                pool=f"{self._prefix}{number}",
                cost=price * amount / total / 2,
            )
            for number, amount in enumerate(doubling_steps(fleet, self.kind))
        )
        return with_candidates(fleet, self.cluster, steps)

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return how much supply to add."""
        problem = sizing.problem
        steps = (
            problem.policies[problem.policy_index[item]]
            for item in sizing.decision.policies
            if item.cluster == self.cluster and item.policy.startswith(self._prefix)
        )
        amount = sum(supply for step in steps for _, supply in step.supplies)
        return self.grown(sizing.fleet, amount) if amount else None

    def grown(self, fleet: Fleet, amount: float, _workload: str = "", /) -> AddedSupply:
        """Return so much more of the device on the cluster."""
        own = next(item for item in fleet.clusters if item.name == self.cluster)
        by_policy = any(item.kind == self.kind for one in own.candidates for item in one.supplies)
        # The supply of one policy is lost with the policy; an addition is not.
        whatever = ", available whichever policy it enforces" if by_policy else ""
        what = f"{format_quantity(amount)} {self.kind} {self.device}".strip()
        supply = Supply(self.kind, self.device, amount)
        return AddedSupply(
            f"add {what} to cluster {self.cluster}{whatever}",
            partial(with_supplies, cluster=self.cluster, added=(supply,)),
            amount / useful_amount(fleet, self.kind),
            self.cluster,
            supply,
        )


@dataclass(frozen=True, eq=False)
class CandidateLayouts(RelaxableLimit):
    """The GPUs of a pool get only the layouts of its candidates."""

    cluster: str
    further: tuple[FurtherLayout, ...]

    sized: ClassVar[bool] = True

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the pool can have the further layouts too."""
        return with_candidates(fleet, self.cluster, (item.policy for item in self.further))

    def priced(self, fleet: Fleet, price: float) -> Fleet:
        """Return the fleet in which a further layout costs more, the more GPUs it needs freed."""
        most = 1 + max(len(item.freed) for item in self.further)
        priced = (
            replace(item.policy, cost=price * (1 + len(item.freed)) / most / 2)
            for item in self.further
        )
        return with_candidates(fleet, self.cluster, priced)

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return the policy with the layout that the decision has."""
        chosen = {item.policy for item in sizing.decision.policies if item.cluster == self.cluster}
        for item in self.further:
            if item.policy.policy in chosen:
                size = _FREED * len(item.freed)
                return LimitChange(self._words(item), partial(self._with_layout, item), size)
        return None

    def _with_layout(self, layout: FurtherLayout, fleet: Fleet) -> Fleet:
        """Return the fleet as the optimizer reads it after the change, the policy included."""
        made = with_candidates(fleet, self.cluster, (layout.policy,))
        return layout.regenerate(made) if layout.freed else made

    def _words(self, item: FurtherLayout) -> str:
        gpus: dict[str, list[str]] = {}
        for name, layout in item.divided:
            gpus.setdefault(_layout_words(layout), []).append(name)
        layouts = ", ".join(f"{gpu_names(names)} {words}" for words, names in gpus.items())
        if item.freed:
            freed = f"free {gpu_names(item.freed)} of cluster {self.cluster}"
            return f"{freed}, so that a policy can be enforced with {layouts}"
        return f"add a candidate policy to cluster {self.cluster}, with {layouts}"


@dataclass(frozen=True, eq=False)
class OnePolicyPerPool(RelaxableLimit):
    """A pool of a cluster enforces one policy. Nobody can change that."""

    cluster: str
    pool: str

    changeable: ClassVar[bool] = False

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which every policy of the pool can be enforced at once."""
        return with_cluster(fleet, self.cluster, self._each_its_own_pool)

    def _each_its_own_pool(self, cluster: Cluster) -> Cluster:
        candidates = (
            replace(item, pool=f"{self.pool}/{item.policy}") if item.pool == self.pool else item
            for item in cluster.candidates
        )
        return replace(cluster, candidates=tuple(candidates))


@dataclass(frozen=True, eq=False)
class NodeBoundary(RelaxableLimit):
    """The Pods of a cluster's workloads find nodes, not only room in sum.

    `freed`: what makes room for the workload on the node that lacks least, if others hold that.
    """

    cluster: str
    freed: FreedOnNode | None = None

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which no node of the cluster limits its Pods."""
        return with_cluster(self._freed(fleet), self.cluster, lambda i: replace(i, nodes=None))

    def _freed(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which others hold less on that node, and the cluster has it."""
        freed = self.freed
        if freed is None:
            return fleet
        added = (Supply(*kind_and_device(name), much) for name, much in freed.amounts)
        change = partial(with_freed_node, freed=freed)
        return with_cluster(with_supplies(fleet, self.cluster, added), self.cluster, change)

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return that a node is added, where the workload is placed on the cluster."""
        if all(item.cluster != self.cluster for item in sizing.assignments):
            return None
        return self.grown(sizing.fleet, 0.0, sizing.required.workload)

    def grown(self, _fleet: Fleet, _amount: float, workload: str, /) -> LimitChange:
        """Return what to free on a node, or that the cluster needs a node for each Pod."""
        if self.freed is not None:
            node = f"node {UntrustedName(self.freed.node)}" if self.freed.node else "one node"
            message = f"free {self.freed.words} on {node} of cluster {self.cluster}"
            return LimitChange(message, self._freed, self.freed.share)
        message = (
            f"give cluster {self.cluster} a node for each Pod of workload {workload}: add nodes, or"
            " end what holds them"
        )
        return LimitChange(message, self.relax, GIVEN_UP)


def useful_amount(fleet: Fleet, kind: str) -> float:
    """Return how much of a kind all workloads together can use; 1 where they ask for nothing.

    A workload that asks for an amount of 0 still needs a device to run on.
    """
    used = (item.replicas * amount for item in fleet.workloads for amount in _asked(item, kind))
    return sum(used) or 1.0


def supply_step(fleet: Fleet, kind: str) -> float:
    """Return the least amount that a supply is changed by: what all amounts are multiples of."""
    amounts = [amount for item in fleet.workloads for amount in _asked(item, kind)]
    amounts += [item.amount for c in fleet.clusters for item in c.supplies if item.kind == kind]
    return max(common_divisor(amounts) or 0.0, useful_amount(fleet, kind) / MAX_STEPS)


def doubling_steps(fleet: Fleet, kind: str) -> Iterator[float]:
    """Yield a step, 2 steps, 4 steps ... that together are enough for all workloads."""
    step = supply_step(fleet, kind)
    while step < 2 * useful_amount(fleet, kind):
        yield step
        step *= 2


def as_gpus(fleet: Fleet, changes: Sequence[LimitChange]) -> tuple[LimitChange, ...]:
    """Return changes in which devices are added as whole GPUs wherever GPUs are described."""
    return tuple(
        _as_gpu(fleet, item) if isinstance(item, AddedSupply) else item for item in changes
    )


def policies_leaving_gpus(fleet: Fleet, name: str) -> Iterator[tuple[LimitChange, ...]]:
    """Yield by cluster a policy that leaves whole what is free there of GPUs that a workload needs.

    The second change: scores that are not known, because no policy supplies those GPUs.
    """
    own, pods = next(i for i in fleet.workloads if i.name == name), pod_demands(fleet)[name]
    usable = own.kind == GPU_KIND and {WHOLE_GPU}.issuperset(own.devices)
    for cluster in fleet.clusters if usable else ():
        dividing = [i for i in cluster.candidates if GPU_KIND in {each.kind for each in i.supplies}]
        one_pool = len({item.pool for item in dividing}) == 1
        if one_pool and own.amount <= undivided_gpus(cluster, pods):
            key = cluster.name, own.app, WHOLE_GPU
            lacking = [(score, key) for score, held in fleet.scores.items() if key not in held]
            unread = all((key[0], key[2]) not in fleet.scores[score].places for score, _ in lacking)
            scores = [delivered_scores(lacking, unread=unread, value=1.0)] if lacking else []
            yield _leaving_gpus(cluster, dividing, own.amount), *scores


def _leaving_gpus(
    cluster: Cluster, dividing: Sequence[CandidatePolicy], amount: float
) -> LimitChange:
    in_force = (item.supplies for item in dividing if item.current)
    made = [
        replace(
            dividing[0],
            policy=f"added/{number}",
            supplies=(*rest, Supply(GPU_KIND, WHOLE_GPU, amount)),
            current=False,
            layouts=(),
            declared_layouts=(),
        )
        for number, rest in enumerate([(), *in_force])
    ]
    message = (
        f"add a candidate policy to cluster {cluster.name} that leaves"
        f" {counted(int(amount), 'free GPU')} of its nodes whole (whatIf.policies tries it)"
    )
    return LimitChange(message, partial(with_candidates, cluster=cluster.name, added=made), _FREED)


def _asked(workload: Workload, kind: str) -> Iterator[float]:
    """Yield the amounts of a kind that one replica of a workload asks for."""
    own = (workload.kind, workload.amount)
    yield from (amount for asked, amount in (own, *workload.requests) if asked == kind)


def _as_gpu(fleet: Fleet, change: AddedSupply) -> LimitChange:
    kind, device, amount = change.supply
    own = next(item for item in fleet.clusters if item.name == change.cluster)
    nodes = (node for candidate in own.candidates for node in candidate.layouts)
    counts = {
        layout: dict(device_counts(layout)).get(device, 0)
        for layout in chain.from_iterable(node.gpus for node in nodes)
    }
    most = max(counts.values(), default=0)
    if kind != GPU_KIND or not most:
        return change
    layout = next(item for item, count in counts.items() if count == most)
    gpus = ceil(amount / most)
    added = tuple(
        Supply(GPU_KIND, name, float(count * gpus)) for name, count in device_counts(layout)
    )
    many = "a GPU" if gpus == 1 else f"{gpus} GPUs"
    message = f"add {many} to cluster {change.cluster}, {_layout_words(layout)}"
    apply = partial(with_supplies, cluster=change.cluster, added=added)
    return LimitChange(message, apply, change.size)


def _layout_words(layout: ProfileCounts | None) -> str:
    """Return a layout in words, such as `divided into 2 x 3g.48gb`."""
    if layout is None:
        return "not divided"
    return "divided into " + " and ".join(f"{count} x {name}" for name, count in layout)
