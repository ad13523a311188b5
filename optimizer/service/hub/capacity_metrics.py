"""Gauges of what the clusters have, what is reserved there and what is free, for Prometheus."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, MANAGED_CLUSTER, NODE_INVENTORY
from optimizer.follow.overview import capacity
from optimizer.service.hub.watched_hub import WatchedHub

MAX_CLUSTERS = 500
"""Clusters with series of their own: with 8 resources each, these are 20,000 series."""

_RESOURCE = re.compile(r"(?=.{1,100}\Z)[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9._-]+)?")
_STATES = ("ours", "others", "free", "unavailable")
_PREFIX = "dynamic_scoring_optimizer_"
_UNITS = {"cpu": "core", "memory": "byte"}


class CapacityMetrics:
    """Makes the gauges of the hub's cache when they are asked for; the first time begins to watch.

    Names of clusters are those that the hub accepted. Other labels are names of resources.
    """

    def __init__(self, hub: WatchedHub, now: Callable[[], datetime]) -> None:
        self._hub = hub
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Yield the sums over the fleet, and the amounts of the clusters with the most devices."""
        now = self._now()
        self._hub.watch(MANAGED_CLUSTER, NODE_INVENTORY)
        clusters = [name for _, name in self._hub.items(MANAGED_CLUSTER)]
        scores = self._hub.items(ADD_ON_PLACEMENT_SCORE)
        idle = (scores.get((name, capacity.IDLE_SCORE)) for name in clusters)
        known = capacity.capacities(
            clusters, self._hub.items(NODE_INVENTORY).values(), filter(None, idle), now
        )
        fleet = capacity.fleet_capacity(known.values())
        inventories = GaugeMetricFamily(
            f"{_PREFIX}inventories",
            "NodeInventories of managed clusters by state: current; expired, or not readable: plans"
            " do not rely on them, and their clusters are in no sum of capacity.",
            labels=["state"],
        )
        inventories.add_metric(["current"], fleet.current)
        inventories.add_metric(["expired"], fleet.expired)
        age = GaugeMetricFamily(
            f"{_PREFIX}oldest_inventory_age_seconds",
            "Seconds since the agent of a cluster last confirmed its NodeInventory; of the cluster"
            " where that is longest ago. Agents do so each minute.",
        )
        seen = [(now - item.observed).total_seconds() for item in known.values() if item.observed]
        if seen:
            age.add_metric([], max(seen))
        yield from (inventories, age)
        of_fleet = (("", row) for row in fleet.resources)
        yield from _amounts("fleet_capacity", "of all clusters", [], of_fleet)
        current = [item for item in known.values() if item.current]
        largest = sorted(current, key=_devices, reverse=True)[:MAX_CLUSTERS]
        of_clusters = ((item.cluster, row) for item in largest for row in item.resources)
        yield from _amounts(
            "cluster_capacity",
            f"of each of the {MAX_CLUSTERS} clusters with the most devices",
            ["cluster"],
            of_clusters,
        )


def _devices(item: capacity.ClusterCapacity) -> float:
    return sum(row.capacity for row in item.resources if "/" in row.resource)


def _amounts(
    name: str, whose: str, cluster: list[str], rows: Iterator[tuple[str, capacity.ResourceCapacity]]
) -> Iterator[Metric]:
    """Yield the gauges of amounts and of idle devices; models of a resource are added up."""
    amounts = GaugeMetricFamily(
        f"{_PREFIX}{name}",
        f"Resources on nodes {whose}, by state: ours: reserved by Pods of ManifestWorks; others:"
        " reserved by other Pods; free; unavailable: on nodes that are not ready or are cordoned."
        " In cores, bytes or devices.",
        labels=[*cluster, "resource", "unit", "state"],
    )
    idle = GaugeMetricFamily(
        f"{_PREFIX}{name}_idle",
        f"Reserved devices {whose} that were idle, on average of the last day, as the score"
        f" {capacity.IDLE_SCORE} measures it. Times 24, these are device hours a day.",
        labels=[*cluster, "resource"],
    )
    sums = dict[tuple[str, str], dict[str, float]]()
    for where, row in rows:
        if _RESOURCE.fullmatch(row.resource):
            of = sums.setdefault((where, row.resource), dict.fromkeys(_STATES, 0.0))
            for state in _STATES:
                of[state] += getattr(row, state)
            if row.idle is not None:
                of["idle"] = of.get("idle", 0.0) + row.idle
    for (where, resource), of in sums.items():
        labels = [*([where] if cluster else []), resource]
        for state in _STATES:
            amounts.add_metric([*labels, _UNITS.get(resource, "device"), state], of[state])
        if "idle" in of:
            idle.add_metric(labels, of["idle"] / 24)
    yield from (amounts, idle)
