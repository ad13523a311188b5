"""The GPUs of the managed clusters of a fleet, and what of them is reserved."""

from collections import defaultdict
from collections.abc import Mapping

from optimizer.domain.fleet import CandidatePolicy, Workload
from optimizer.domain.nodes import GPU_KIND
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.snapshot.capacity.node_inventories import Inventory, read_inventory
from optimizer.snapshot.drawn_gpus import GpuCounts, gpus_of_cluster, held_devices, occupied_devices
from optimizer.snapshot.object_readers import read_policy, read_workload
from optimizer.snapshot.ownership.namespace_reader import amounts_of
from optimizer.wire.result import OccupiedDevice


def drawn_gpus(facts: FleetFacts, name: str) -> tuple[GpuCounts, tuple[OccupiedDevice, ...]]:
    """Return the GPUs of a managed cluster, and what is reserved of them."""
    obj = facts.inventories.get(name)
    read = read_inventory(obj, facts.observation.observed_at) if obj else None
    inventory = read if isinstance(read, Inventory) else None
    bound = (facts.hub.policies.get(item.policy) for item in facts.bound.get(name, ()))
    found = [read_policy(policy, name) for policy in bound if policy]
    policies = [item for item in found if isinstance(item, CandidatePolicy)]
    gpus = gpus_of_cluster(facts.hub.clusters[name], inventory, policies)
    return gpus, occupied_devices(_reserved(facts, name, inventory, gpus))


def _reserved(
    facts: FleetFacts, cluster: str, inventory: Inventory | None, gpus: GpuCounts
) -> Mapping[tuple[str, str], float]:
    """Return amounts by device and workload: as Pods have them, or else as workloads ask.

    A workload without Pods in the inventory asks for what its labels say, on the device that the
    cluster supplies; which of several is not known.
    """
    placed = {item.workload for item in facts.running.get(cluster, ())}
    found, seen = defaultdict[tuple[str, str], float](float), set[str]()
    for nodes in inventory.nodes if inventory else ():
        for device, work, amount in held_devices(nodes):
            workload = work if work in placed else ""
            seen.add(workload)
            found[device, workload] += amount * nodes.count
    devices = {part.device for item in gpus for part in item.layout.slices}
    for name in placed - seen:
        read = read_workload(facts.workloads[name]) if name in facts.workloads else None
        if isinstance(read, Workload):
            asked = sum(amount for kind, amount in amounts_of(read) if kind == GPU_KIND)
            able = devices.intersection(read.devices) or devices
            found[next(iter(able)) if len(able) == 1 else "", name] += asked
    return found
