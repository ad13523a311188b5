"""What nodes have, what Pods reserve of it, what is free, and what is reserved but idle.

capacity = ours + others + free, on nodes that are ready and not cordoned, unless Pods request more
than a node has. Reserved is what Pods that are bound to nodes request: `ours` those of
ManifestWorks. Idle is reserved, but not used: the share of the last day in which reserved GPUs
computed nothing, as a score measures it, of what is reserved now. Amounts are in the base unit:
cores, bytes, devices.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from dsf.api.conditions import conditions_of, find
from dsf.api.untrusted_text import InvalidInput, UntrustedName, counted, joined, listed
from dsf.kube.port import Object
from optimizer.domain.nodes import GPU_KIND, GPU_RESOURCE, PRODUCT, kind_and_device
from optimizer.snapshot.capacity.node_inventories import SeenNodes, by_cluster, read_inventory
from optimizer.snapshot.drawn_gpus import gpu_model
from optimizer.snapshot.scores.score_row import ScoreRow, entry_names
from optimizer.wire.base import Name, ResultPart, Sentence

IDLE_SCORE = "gpu-idle"
"""Name of the AddOnPlacementScores that say how idle reserved GPUs are.

An entry is named by a device. Its value is a percentage: of the time of the last day in which Pods
had such devices, that in which these were idle.
"""

MAX_RESOURCES = 16
"""Resources that are shown of one cluster, GPUs and other devices first."""

MAX_FLEET_RESOURCES = 50
"""Resources, apart by GPU model, that are shown of a fleet."""

MAX_NAMED = 5
"""Clusters, and kinds of devices, that one sentence names."""

MAX_NAME, MAX_MODEL = 317, 63
"""Characters of a resource's name and of a label's value in Kubernetes."""

_HOURS, _PERCENT = 24.0, 100.0


class ResourceCapacity(ResultPart):
    """A resource of nodes, in the base unit, on nodes that are ready and not cordoned."""

    resource: Annotated[Name, Field(description="Such as cpu, memory, nvidia.com/mig-3g.40gb.")]
    model: Annotated[Name, Field(description="GPU model; empty: not of a GPU, or unknown.")] = ""
    capacity: float
    ours: Annotated[float, Field(description="Reserved by Pods of ManifestWorks.")]
    others: Annotated[float, Field(description="Reserved by other Pods.")]
    free: float
    largest_free: Annotated[float, Field(description="The most that is free on one node.")]
    unavailable: Annotated[
        float, Field(description="On nodes that are not ready or are cordoned, besides.")
    ] = 0.0
    idle: Annotated[
        float | None,
        Field(description="Device hours a day that are reserved but idle; null: not measured."),
    ] = None

    @property
    def reserved(self) -> float:
        """What Pods that are bound to these nodes request."""
        return self.ours + self.others


class ClusterCapacity(ResultPart):
    """The capacity of a managed cluster, as its agent saw it at `observed`."""

    cluster: Name
    observed: Annotated[datetime | None, Field(description="null: it can't be read.")] = None
    expired: Annotated[bool, Field(description="Too old: plans do not rely on it.")] = False
    unreadable: Annotated[Sentence, Field(description="Why it can't be read; empty: it can.")] = ""
    complete: Annotated[
        bool, Field(description="false: its condition Complete says what is not counted.")
    ] = True
    nodes: int = 0
    unavailable_nodes: int = 0
    resources: tuple[ResourceCapacity, ...] = ()

    @property
    def current(self) -> bool:
        """Whether plans rely on it."""
        return not (self.expired or self.unreadable)

    def parts(self, most: int) -> "Iterator[ClusterCapacity]":
        """Yield it with some devices after others; with cpu and memory first if it has none."""
        devices = tuple(item for item in self.resources if "/" in item.resource)
        shown = devices or self.resources[:most]
        for at in range(0, len(shown) or 1, most):
            yield self.model_copy(update={"resources": shown[at : at + most]})


def largest_first(clusters: Iterable[ClusterCapacity]) -> list[ClusterCapacity]:
    """Return clusters in the order of the largest free piece of GPUs, then of all that is free."""

    def rank(item: ClusterCapacity) -> tuple[Any, ...]:
        gpus = [row for row in item.resources if kind_and_device(row.resource)[0] == GPU_KIND]
        largest = max((row.largest_free for row in gpus), default=0.0)
        return not item.current, -largest, -sum(row.free for row in gpus), -len(gpus), item.cluster

    return sorted(clusters, key=rank)


class FleetResource(ResourceCapacity):
    """A resource, and of which model, of all clusters whose inventory is current."""

    largest_on: Annotated[
        Name, Field(description="The cluster with the most free on one node; empty: none.")
    ]


class FleetCapacity(ResultPart):
    """The capacity of a fleet: sums over the clusters whose NodeInventory is current."""

    current: Annotated[int, Field(description="Clusters that are counted.")] = 0
    expired: Annotated[
        int, Field(description="Clusters whose NodeInventory has expired or can't be read.")
    ] = 0
    not_counted: Annotated[
        Sentence, Field(description="Which clusters are in no sum, and why; empty: none.")
    ] = ""
    resources: tuple[FleetResource, ...] = ()
    omitted: Annotated[int, Field(description="Resources that are left out.")] = 0
    clusters: Annotated[
        tuple[ClusterCapacity, ...],
        Field(description="Those with the largest free piece of GPUs first, as far as shown."),
    ] = ()


NO_CAPACITY = FleetCapacity()
"""The capacity of a fleet without a NodeInventory."""


def capacities(
    clusters: Iterable[str], inventories: Iterable[Object], idle: Iterable[ScoreRow], now: datetime
) -> dict[str, ClusterCapacity]:
    """Return the capacity of each of the clusters that has a NodeInventory, by name.

    `idle`: the rows of IDLE_SCORE. Expired ones count as if there were none.
    """
    known = by_cluster(inventories)
    shares = {row.cluster: _idle_shares(row) for row in idle if not row.expired(now)}
    return {
        name: cluster_capacity(known[name], shares.get(name, {}), now)
        for name in sorted(clusters)
        if name in known
    }


def _idle_shares(row: ScoreRow) -> dict[str, float]:
    """Return the idle share by device; values that are no percentage are left out."""
    found = zip(entry_names(row.names), row.values, strict=True)
    shares = ((_plain(name), value / _PERCENT) for name, value in found)
    return {name: share for name, share in shares if 0 <= share <= 1}


def _plain(device: str) -> str:
    """Return a device as resources spell it: `1g.10gb.me`, which DCGM calls `1g.10gb+me`."""
    return device.replace("+", ".")


def cluster_capacity(
    inventory: Object, idle: Mapping[str, float], now: datetime
) -> ClusterCapacity:
    """Return the capacity that a NodeInventory tells of. `idle`: the idle share by device.

    Of one with a quantity that can't be read nothing is told but why.
    """
    cluster, read = str(inventory["metadata"].get("namespace")), read_inventory(inventory, now)
    if isinstance(read, InvalidInput):
        return ClusterCapacity(cluster=cluster, unreadable=read.message)
    sums: _Sums = {}
    for group in read.nodes:
        _add(sums, group)
    shown = sorted(
        (key for key, found in sums.items() if found["capacity"] or found["unavailable"]),
        key=lambda key: ("/" not in key[0], key),
    )
    complete = find(conditions_of(inventory), _COMPLETE) or {}
    return ClusterCapacity(
        cluster=cluster,
        observed=read.observed,
        expired=read.left <= 0,
        complete=complete.get("status") != "False",
        nodes=sum(item.count for item in read.nodes),
        unavailable_nodes=sum(item.count for item in read.nodes if not _usable(item)),
        resources=tuple(_shown(key, sums[key], idle) for key in shown[:MAX_RESOURCES]),
    )


_COMPLETE = "Complete"
"""The condition of a NodeInventory that is False where something is not counted exactly."""


def _usable(nodes: SeenNodes) -> bool:
    return nodes.ready and not nodes.cordoned


_Sums = dict[tuple[str, str, str], dict[str, float]]
"""Amounts by resource, GPU model and device; the latter are empty for what is no GPU."""

_SUMMED = ("capacity", "ours", "others", "free", "unavailable")


def _shown(
    key: tuple[str, str, str], amounts: Mapping[str, float], idle: Mapping[str, float]
) -> ResourceCapacity:
    resource, model, device = key
    share = idle.get(_plain(device)) if device else None
    reserved = amounts["ours"] + amounts["others"]
    hours = None if share is None else round(share * reserved * _HOURS, 1)
    return ResourceCapacity(resource=resource, model=model, idle=hours, **amounts)


def _add(sums: _Sums, nodes: SeenNodes) -> None:
    """Add equal nodes to the sums of their cluster."""
    for resource, whole in nodes.allocatable.items():
        shown = "/" in resource or resource in ("cpu", "memory")  # a device has a domain
        if not shown or len(resource) > MAX_NAME:
            continue
        kind, device = nodes.kind_and_device(resource)
        model = gpu_model(nodes.labels.get(PRODUCT, ""))[:MAX_MODEL]
        key = (resource, model, device) if kind == GPU_KIND else (resource, "", "")
        found = sums.setdefault(key, dict.fromkeys((*_SUMMED, "largest_free"), 0.0))
        if not _usable(nodes):
            found["unavailable"] += nodes.count * whole
            continue
        taken = nodes.requested.get(resource, 0.0)
        ours = min(sum(own.get(resource, 0.0) for _, own in nodes.works), taken)
        free = max(0.0, whole - taken)
        added = {"capacity": whole, "ours": ours, "others": taken - ours, "free": free}
        for name, amount in added.items():
            found[name] += nodes.count * amount
        found["largest_free"] = max(found["largest_free"], free)


def fleet_capacity(
    clusters: Iterable[ClusterCapacity],
    listed: Sequence[ClusterCapacity] = (),
    *,
    shown: int = MAX_FLEET_RESOURCES,
    without: Sequence[str] = (),
) -> FleetCapacity:
    """Return the sums over the clusters whose inventory is current, by resource and GPU model.

    `listed`: the clusters of its list. `shown`: how many resources it has at most; whole GPUs are
    not left out for slices, of which there are more. `without`: clusters that have no inventory.
    """
    every = tuple(clusters)
    current = [item for item in every if item.current]
    rows = dict[tuple[str, str], list[tuple[str, ResourceCapacity]]]()
    for item in current:
        for row in item.resources:
            rows.setdefault((row.resource, row.model), []).append((item.cluster, row))
    largest = sorted(
        rows.values(),
        key=lambda found: (
            found[0][1].resource != GPU_RESOURCE,
            -sum(row.capacity for _, row in found),
        ),
    )
    return FleetCapacity(
        current=len(current),
        expired=len(every) - len(current),
        not_counted=_not_counted(every, without) if every else "",
        resources=tuple(
            sorted(
                map(_sum, largest[:shown]),
                key=lambda row: ("/" not in row.resource, row.resource, row.model),
            )
        ),
        omitted=max(0, len(largest) - shown),
        clusters=tuple(listed),
    )


def _not_counted(every: Iterable[ClusterCapacity], without: Sequence[str]) -> str:
    """Return which clusters are in no sum, why, and the devices that were last seen there."""
    expired = [item for item in every if item.expired]
    devices = Counter[str]()
    for row in (row for item in expired for row in item.resources if "/" in row.resource):
        devices[row.resource] += int(row.capacity + row.unavailable)
    last = joined((f"{count} {UntrustedName(name)}" for name, count in devices.items()), MAX_NAMED)
    unreadable = [item.cluster for item in every if item.unreadable]
    return "; ".join(
        f"{counted(len(names), 'cluster')} {why} ({listed(names, MAX_NAMED)}{seen})"
        for names, why, seen in (
            (
                [item.cluster for item in expired],
                "whose NodeInventory has expired",
                f"; last seen: {last}" if last else "",
            ),
            (unreadable, "whose NodeInventory can't be read", ""),
            (without, "without a NodeInventory", ""),
        )
        if names
    )


def _sum(rows: Sequence[tuple[str, ResourceCapacity]]) -> FleetResource:
    cluster, best = max(rows, key=lambda found: found[1].largest_free)
    idle = [row.idle for _, row in rows if row.idle is not None]
    return FleetResource(
        resource=best.resource,
        model=best.model,
        largest_free=best.largest_free,
        largest_on=cluster if best.largest_free else "",
        idle=round(sum(idle), 1) if idle else None,
        **{name: sum(getattr(row, name) for _, row in rows) for name in _SUMMED},
    )


def shown_amount(resource: str, amount: float) -> str:
    """Return an amount for people: memory in GiB, others as a number."""
    unit, scale, digits = ("Gi", 2**30, 4) if resource == "memory" else ("", 1, 6)
    whole = round(amount / scale)
    return f"{whole if whole >= 10 ** (digits - 1) else f'{amount / scale:.{digits}g}'}{unit}"
