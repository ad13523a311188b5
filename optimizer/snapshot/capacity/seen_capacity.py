"""What clusters supply by their NodeInventories, checked against what people stated.

Supplies are sums over nodes, without what Pods hold there that the request does not decide about.
What is stated beyond that is an issue, and the smaller amount counts. A policy that is in force
supplies what nodes advertise; another one at most what the GPUs without others' Pods can become.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from dsf.api.conditions import conditions_of, find
from dsf.api.scoring.quantity import format_quantity
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName, joined
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Cluster, Supply
from optimizer.domain.issue import NODES_UNAVAILABLE, Issue, TakenIssue
from optimizer.domain.nodes import GPU_KIND, WHOLE_GPU, resource_of
from optimizer.snapshot.capacity.cluster_nodes import ClusterNodes, Devices, gpus_of_others
from optimizer.snapshot.capacity.labelled_gpus import labelled_gpus
from optimizer.snapshot.capacity.node_inventories import Inventory, by_cluster, read_inventory
from optimizer.snapshot.object_readers import name_of, replica_set_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.others import OthersOnCluster
from optimizer.wire.object_specs import SupplySpec

STARTING = timedelta(seconds=10)
"""How long after a ManifestWork was applied an inventory may lack its Pods.

Also how long after a policy was bound a claim may speak of the policies before it, and nodes may
advertise their devices.
"""

_OF_NODES = frozenset({"cpu", "memory", "ephemeral-storage", "pods", GPU_KIND})
"""Kinds that only nodes have, whether or not one advertises them; so has each with a domain."""

_DEVICE = re.compile(rf"{WHOLE_GPU}|[0-9]+g\.[0-9]+gb.*")
"""The devices of which nodes and GPUs tell how many there are."""

_SHOWN = 10
"""Amounts that a message names."""

_NOTHING_NEW = "nothing new is placed there, and what runs there stays"


@dataclass(frozen=True, slots=True)
class Inventories:
    """The inventories of clusters that can be read, by cluster.

    `not_relied`: clusters where nothing new starts, because theirs is too old or can't be read.
    """

    of: Mapping[str, Inventory]
    not_relied: frozenset[str]
    issues: tuple[Issue, ...]


def read_inventories(clusters: Iterable[Cluster], observation: Observation) -> Inventories:
    """Return the inventories of clusters, except of those where what is stated wins."""
    objects = by_cluster(observation.inventories)
    read, not_relied, issues = dict[str, Inventory](), set[str](), list[Issue]()
    for name in (item.name for item in clusters if item.capacity_source == "Seen"):
        if name not in objects:
            continue
        found = read_inventory(objects[name], observation.observed_at)
        if isinstance(found, InvalidInput):
            not_relied.add(name)
            issues.append(_issue("InvalidInventory", name, f"{found.message}; {_NOTHING_NEW}"))
            continue
        read[name] = found
        if found.left <= 0:
            why = f"its NodeInventory of {rfc3339(found.observed)} has expired; {_NOTHING_NEW}"
            not_relied.add(name)
            issues.append(_issue("InventoryExpired", name, why))
    return Inventories(read, frozenset(not_relied), tuple(issues))


def settling(observation: Observation, bound: Iterable[datetime]) -> datetime:
    """Return from when on inventories have the Pods and devices of all that was written."""
    applied = filter(None, map(_applied, observation.works or ()))
    return max((*bound, *applied), default=datetime.min.replace(tzinfo=UTC)) + STARTING


def without_seen_uses(
    others: Mapping[str, OthersOnCluster], inventories: Inventories, observation: Observation
) -> Mapping[str, OthersOnCluster]:
    """Return what others use on clusters, without what the inventories count already.

    An inventory counts a ManifestWork if it lists Pods of it, or was made after it was applied.
    """
    counted = defaultdict[str, set[tuple[str, str]]](set)
    for work in observation.works or () if inventories.of else ():
        cluster = str(work["metadata"].get("namespace"))
        found = inventories.of.get(cluster)
        applied = _applied(work)
        if found and (
            name_of(work) in found.works or (applied and applied + STARTING <= found.observed)
        ):
            counted[cluster].add(replica_set_of(work))
    left = dict(others)
    for name in counted.keys() & others.keys():
        uses = [i for i in others[name].uses if (i.namespace, i.workload) not in counted[name]]
        left[name] = replace(others[name], uses=uses)
    return left


def _applied(work: Object) -> datetime | None:
    """Return since when a ManifestWork is applied; None if it is not."""
    found = find(conditions_of(work), "Applied") or {}
    return read_time(found.get("lastTransitionTime")) if found.get("status") == "True" else None


@dataclass(frozen=True)
class SeenCluster:
    """A cluster with an inventory, and what of it the request can use.

    `stated`: what people say that it supplies without a policy. `controlled`: policies decide which
    devices its GPUs are. `settled`: the policies in force are compliant. `asked`: the kinds that
    workloads request.
    """

    cluster: Cluster
    nodes: ClusterNodes
    stated: Collection[SupplySpec]
    controlled: bool
    settled: bool
    asked: Collection[str]

    def read(self) -> tuple[Cluster, tuple[Issue, ...]]:
        """Return the cluster with its nodes and what they supply, and the contradictions."""
        issues = list[Issue]()
        made = self.seen(issues)
        return made, tuple(dict.fromkeys([*self._not_planned(made), *issues]))

    def seen(self, issues: list[Issue]) -> Cluster:
        """Return the cluster with its nodes and what they supply; add contradictions to issues."""
        base = [*self._stated(issues), *self._unstated()]
        left = defaultdict(float, self._supplies)
        candidates = [self._checked(item, left, issues) for item in self.cluster.candidates]
        enforced = [
            self._checked(item, defaultdict(float, self._supplies), issues)
            for item in self.cluster.enforced
        ]
        return replace(
            self.cluster,
            nodes=self.nodes.groups(),
            base=tuple(base),
            candidates=tuple(candidates),
            enforced=tuple(enforced),
        )

    @cached_property
    def _supplies(self) -> Mapping[tuple[str, str], float]:
        """What nodes have for the request."""
        return self._named(self.nodes.supplies())

    @cached_property
    def _advertised(self) -> Mapping[tuple[str, str], float]:
        """What nodes have, whoever uses it."""
        return self._named(self.nodes.advertised())

    @cached_property
    def _usable(self) -> Mapping[tuple[str, str], float]:
        """What nodes have on which something new may start, whoever uses it."""
        closed = self.nodes.unavailable()
        return {key: much - closed.get(key, 0.0) for key, much in self._advertised.items()}

    def _named(self, amounts: Devices) -> Mapping[tuple[str, str], float]:
        """Return amounts also by the names of resources that workloads ask for.

        These are other names of the same devices, so only one of both is asked for.
        """
        found = dict(amounts)
        if GPU_KIND not in self.asked:
            for (kind, device), amount in list(found.items()):
                if kind == GPU_KIND:
                    found[resource_of(kind, device), ""] = amount
        return found

    def _stated(self, issues: list[Issue]) -> Iterator[Supply]:
        """Yield what is stated, as far as nodes have it."""
        advertised = {kind for kind, _ in self._advertised}
        for item in self.stated:
            of_nodes = item.kind in _OF_NODES or "/" in item.kind or item.kind in advertised
            key = item.kind, item.device
            there = self._advertised.get(key, 0.0)
            if of_nodes and item.amount > there:
                said = f"{_amount(*key, item.amount)} without a policy are stated"
                issues.append(self._contradiction(said, there))
            left = self._supplies.get(key, 0.0)
            yield Supply(*key, min(item.amount, left) if of_nodes else item.amount)

    def _unstated(self) -> Iterator[Supply]:
        """Yield what nodes have of the other kinds; GPUs only where no policy supplies them."""
        stated = {item.kind for item in self.stated}
        for (kind, device), amount in self._supplies.items():
            if kind not in stated and not (self.controlled and kind == GPU_KIND):
                yield Supply(UntrustedName(kind), UntrustedName(device), amount)

    def _checked(
        self,
        policy: CandidatePolicy,
        left: defaultdict[tuple[str, str], float],
        issues: list[Issue],
    ) -> CandidatePolicy:
        """Return a policy that supplies no more GPUs than there are; `left` is less by them."""
        in_force = policy.current and self.settled
        most, there = (left, self._advertised) if in_force else self._potential
        is_so = not in_force and (policy.current or self._are_divided_by(policy))
        supplies = list[Supply]()
        for item in policy.supplies:
            key = item.kind, item.device
            if item.kind != GPU_KIND or not _DEVICE.fullmatch(item.device):
                supplies.append(item)
                continue
            free = self._supplies.get(key, 0.0)
            if most is None:
                left_of_it = item.amount - max(0.0, self._usable.get(key, 0.0) - free)
                supplies.append(item._replace(amount=min(item.amount, max(free, left_of_it))))
                continue
            kept = free if is_so else 0.0
            known = max(there.get(key, 0.0), kept)
            if item.amount > known:
                said = f"policy {policy.policy} supplies {_amount(*item)}"
                how = "its nodes have" if in_force else "the GPUs of its nodes allow"
                issues.append(self._contradiction(said, known, how, policy.policy))
            amount = min(item.amount, max(most.get(key, 0.0), kept))
            supplies.append(item._replace(amount=amount))
            if in_force:
                left[key] -= amount
        return replace(policy, supplies=tuple(supplies))

    def _are_divided_by(self, policy: CandidatePolicy) -> bool:
        """Return whether nodes have just the devices that a policy supplies."""
        gpus = [item for item in policy.supplies if item.kind == GPU_KIND]
        return bool(gpus) and all(self._usable.get(i[:2]) == i.amount for i in gpus)

    @cached_property
    def _potential(self) -> tuple[defaultdict[tuple[str, str], float] | None, Devices]:
        """How many of each device the GPUs can become that others use nothing of, and all GPUs.

        None where the labels of a node don't tell its GPUs. Which of the GPUs of a node others use
        is not known, so each of their devices counts as one GPU.
        """
        found = defaultdict[tuple[str, str], float](float)
        every = defaultdict[tuple[str, str], float](float)
        for item in self.nodes.shares:
            gpus = labelled_gpus(item.nodes)
            if isinstance(gpus, InvalidInput) or (gpus and gpus.geometry is None):
                return None, {}
            if gpus and gpus.geometry:
                usable = max(0, gpus.number - math.ceil(gpus_of_others(item)))
                each = {profile.device: profile.max_instances for profile in gpus.geometry.profiles}
                for device, number in ({WHOLE_GPU: 1} | each).items():
                    found[GPU_KIND, device] += item.nodes.count * usable * number * item.nodes.ready
                    every[GPU_KIND, device] += item.nodes.count * gpus.number * number
        return found, every

    def _withheld(self, made: Cluster) -> Iterator[tuple[str, str, float]]:
        """Yield how much more the cluster would supply without the Pods of no ManifestWork."""
        alone = replace(self, nodes=self.nodes.without_strangers())
        free = _most(made)
        for key, amount in _most(alone.seen([])).items():
            if amount > free.get(key, 0.0):
                yield *key, amount - free.get(key, 0.0)

    def _not_planned(self, made: Cluster) -> Iterator[Issue]:
        """Yield what Pods of no ManifestWork use, and what is where nothing new starts."""
        for reason, owner, amounts, why in (
            (
                "UsedWithoutTheHub",
                "Pods of no ManifestWork",
                self.nodes.strangers(),
                "requested by Pods of no ManifestWork (NodeInventory), which is not planned again",
            ),
            (
                NODES_UNAVAILABLE,
                "",
                self.nodes.unavailable(),
                "on nodes that are not ready or cordoned (NodeInventory): nothing new starts there",
            ),
        ):
            asked = [
                (kind, device, amount)
                for (kind, device), amount in amounts.items()
                if amount > 0 and {kind, resource_of(kind, device)} & {*self.asked}
            ]
            if asked:
                named = joined((f"{_amount(*item)}" for item in asked), _SHOWN)
                name = self.cluster.name
                taken = {(kind, device) for kind, device, _ in asked}
                taken |= {(resource_of(*item), "") for item in taken}
                less = frozenset(self._withheld(made) if owner else ())
                taken |= {(kind, device) for kind, device, _ in less}
                said = f"cluster {name}: {named} are {why}"
                yield TakenIssue(
                    reason, said, name, owner=owner, taken=frozenset(taken), withheld=less
                )

    def _contradiction(
        self, said: str, there: float, how: str = "its nodes have", policy: str = ""
    ) -> Issue:
        why = f"{said}, and {how} {format_quantity(there)} (NodeInventory); the smaller counts"
        return replace(_issue("SupplyContradicted", self.cluster.name, why), policy=policy)


def _most(cluster: Cluster) -> Devices:
    """Return the most of each device that a cluster or one of its candidates supplies."""
    found = dict[tuple[str, str], float]()
    for kind, device, amount in cluster.supplies:
        found[kind, device] = max(amount, found.get((kind, device), 0.0))
    return found


def _amount(kind: str, device: str, amount: float) -> str:
    of = f" of {UntrustedName(device)}" if device else ""
    return f"{format_quantity(float(amount))} {UntrustedName(kind)}{of}"


def _issue(reason: str, cluster: str, why: str) -> Issue:
    return Issue(reason, f"cluster {cluster}: {why}", cluster=cluster)
