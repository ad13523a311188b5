"""How much of the devices of nodes the Pods of workloads can keep from each other."""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.dra.device_sets import DeviceClasses, NodeDevices
from optimizer.domain.dra.selectors import NotEvaluated
from optimizer.domain.dra.shares import PodShares, shares
from optimizer.domain.dra.wanted_claims import ClusterClaims, first_devices
from optimizer.domain.fleet import Cluster, Workload
from optimizer.domain.nodes import scored_as
from optimizer.model.parameters import Nodes, PodDemand


def device_loads(nodes: Nodes, pods: Sequence[PodDemand]) -> Mapping[int, Floats]:
    """Return for each Pod with claims what others bring of what keeps it from a node.

    Arrays [pods, groups], as parts of a node: the Pod gets its devices if the parts of those
    before it sum to less than 1. Its own part is infinite where it gets none even alone.
    """
    claiming = [at for at, pod in enumerate(pods) if pod.claims]
    if not claiming:
        return {}
    classes: DeviceClasses = dict(nodes.classes)
    finder = ClusterClaims.of(classes, (group.devices for group in nodes.groups))
    read = [finder.wanted(pod.claims) for pod in pods]
    others = [() if isinstance(item, NotEvaluated) else item for item in read]
    found = {}
    for at in claiming:
        loads = np.zeros((len(pods), len(nodes.groups)))
        known = dict[tuple[NodeDevices, ...], PodShares | None]()
        for number, group in enumerate(nodes.groups):
            if isinstance(read[at], NotEvaluated):
                loads[at, number] = inf
                continue
            if group.devices not in known:
                known[group.devices] = shares(group.devices, others[at], others)
            own = known[group.devices]
            if own is None:
                loads[at, number] = inf
            else:
                loads[:, number] = np.minimum(1.0, np.array(own.loads) / own.needed)
        found[at] = loads
    return found


def claimed_device(cluster: Cluster, workload: Workload) -> str | None:
    """Return the device by which scores name what a workload claims there; "" if it finds none.

    None if its Pods claim nothing of its kind, or if the nodes of the cluster are not known.
    """
    claims = [claim for pod in workload.pods for claim in pod.claims]
    if not claims or cluster.nodes is None:
        return None
    finder = ClusterClaims.of(cluster.device_classes, (group.devices for group in cluster.nodes))
    wanted = finder.wanted(claims)
    if isinstance(wanted, NotEvaluated):
        return ""
    names = [
        scored_as(devices.driver, devices.devices[index])
        for devices, index in first_devices(wanted)
    ]
    of_kind = [device for kind, device in names if kind == workload.kind]
    return of_kind[0] if of_kind else None if names else ""
