"""What keeps Placements from selecting a managed cluster, in one word and in a sentence.

OCM's placement controller looks at deletion, cluster sets and taints. A cluster that the hub does
not accept, or that never joined, gets no work either.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.port import Object
from dsf.placement.taints import UNAVAILABLE, UNREACHABLE, Taint

_LOST = {
    UNAVAILABLE: "the cluster reports that it is not available: look at its klusterlet",
    UNREACHABLE: "its agent does not renew its lease: look at its klusterlet and its network",
}


class Obstacle(NamedTuple):
    """Why a cluster is not selected; `message` names it and says what to do. `since` if known."""

    reason: str
    message: str
    since: datetime | None = None


def state_obstacle(cluster: Object) -> Obstacle | None:
    """Return which state of a managed cluster keeps every Placement from it; None without any."""
    name, metadata = UntrustedName(cluster["metadata"]["name"]), cluster["metadata"]
    if metadata.get("deletionTimestamp"):
        since = read_time(metadata["deletionTimestamp"])
        return Obstacle("ClusterBeingDeleted", f"cluster {name} is being deleted", since)
    if (cluster.get("spec") or {}).get("hubAcceptsClient") is False:
        remedy = f"run `clusteradm accept --clusters {name}`"
        message = f"cluster {name} is not accepted by the hub: {remedy}"
        return Obstacle("ClusterNotAccepted", message)
    joined = find(conditions_of(cluster), "ManagedClusterJoined")
    if joined is not None and joined.get("status") != "True":
        message = f"cluster {name} has not joined the hub: look at its klusterlet"
        since = read_time(joined.get("lastTransitionTime"))
        return Obstacle("ClusterNotJoined", message, since)
    return None


def sets_obstacle(
    cluster: str, member: Collection[str], bound: Collection[str], namespace: str
) -> Obstacle | None:
    """Return that none of the cluster sets of a cluster is bound to a namespace; None if one is.

    `member`: the sets that the cluster belongs to. `bound`: those that the namespace is bound to.
    """
    if set(member) & set(bound):
        return None
    # Binding the set of all clusters is the last thing that an administrator wants.
    names = sorted(member, key=lambda name: (name == "global", name))
    named = f"cluster set {' or '.join(map(str, names))}" if names else "a cluster set that has it"
    command = f"clusteradm clusterset bind {names[0] if names else 'SET'} --namespace {namespace}"
    return Obstacle(
        "ClusterSetNotBound",
        f"cluster {UntrustedName(cluster)} is in no cluster set that is bound to namespace"
        f" {namespace}: bind {named}, `{command}`",
    )


def sets_asked_obstacle(
    cluster: str, eligible: Collection[str], asked: Collection[str]
) -> Obstacle | None:
    """Return that a request's cluster sets leave out a cluster of the eligible sets."""
    if not asked or set(eligible) & set(asked):
        return None
    return Obstacle(
        "ClusterSetNotAsked",
        f"cluster {UntrustedName(cluster)} is in cluster set"
        f" {' and '.join(map(str, sorted(eligible)))}, and the request's clusterSets names only"
        f" {listed(sorted(asked))}",
    )


def taint_obstacle(cluster: str, taint: Taint) -> Obstacle:
    """Return that a cluster has a taint which is not tolerated."""
    since = f" since {rfc3339(taint.added)}" if taint.added else ""
    remedy = _LOST.get(taint.key, "remove the taint, or tolerate it in the request's tolerations")
    message = f"cluster {UntrustedName(cluster)} has the taint {taint}{since}"
    return Obstacle("ClusterTainted", f"{message}: {remedy}", taint.added)
