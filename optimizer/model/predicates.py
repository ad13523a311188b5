"""Predicates: reasons why a workload is not eligible for a resource, each one a named function.

A predicate reads one workload and one resource, as the filters of the Kubernetes scheduler read one
Pod and one node; what couples several is a rule (`optimizer.model.rules`).
"""

from collections.abc import Callable, Mapping

import numpy as np

from optimizer.domain.arrays import Bools, Floats
from optimizer.domain.fleet import Workload
from optimizer.model.problem import NO_DEVICE, ClusterResource
from optimizer.model.resource_index import ResourceIndex

Predicate = Callable[[ResourceIndex, Workload, Floats], Bools]


def not_selectable(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """OCM can't select the cluster for the workload: its taints, its cluster set or its state."""
    return indexed.named(workload.unselectable) if workload.unselectable else indexed.none


def pinned(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The workload may run on clusters that are named for it alone, and not on this one."""
    return ~indexed.named(workload.clusters) if workload.clusters else indexed.none


def excluded_clusters(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster is excluded by the workload."""
    return indexed.named(workload.excluded_clusters) if workload.excluded_clusters else indexed.none


def affinity(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels don't meet the workload's affinity."""
    return ~indexed.meeting(workload.affinity) if workload.affinity else indexed.none


def anti_affinity(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels meet the workload's anti-affinity."""
    return indexed.meeting(workload.anti_affinity) if workload.anti_affinity else indexed.none


def too_small(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """No policy, with what the cluster has anyway, supplies enough of the device."""
    return indexed.most < workload.amount


def extras_too_small(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster can't have enough of a further kind that the workload asks for."""
    if not workload.requests:
        return indexed.none
    lacking = np.zeros(len(indexed.fleet.clusters), dtype=np.bool_)
    for kind, amount in workload.requests:
        for index in range(len(lacking)):
            resource = indexed.number.get(ClusterResource(index, kind, NO_DEVICE))
            lacking[index] |= resource is None or indexed.most[resource] < amount
    return lacking[indexed.cluster]


def unscored(_: ResourceIndex, __: Workload, values: Floats) -> Bools:
    """No usable score says what the assignment is worth."""
    return np.isnan(values)


def below_minimum(indexed: ResourceIndex, workload: Workload, values: Floats) -> Bools:
    """The assignment is worth less than the workload accepts."""
    return indexed.none if workload.minimum_score is None else values < workload.minimum_score


def uncosted(indexed: ResourceIndex, workload: Workload, values: Floats) -> Bools:
    """No usable score says what the assignment takes of a fleet-wide limit."""
    missing = np.zeros(len(values), dtype=np.bool_)
    for limit in indexed.fleet.limits:
        if limit.score:
            missing |= np.isnan(indexed.scores(limit.score, workload.app)) & indexed.meeting(
                limit.selector
            )
    return missing


PREDICATES: Mapping[str, Predicate] = {
    "NotSelectable": not_selectable,
    "NotPinned": pinned,
    "Excluded": excluded_clusters,
    "Affinity": affinity,
    "AntiAffinity": anti_affinity,
    "NoSupply": too_small,
    "NoExtraSupply": extras_too_small,
    "NoUsableScore": unscored,
    "BelowMinimumScore": below_minimum,
    "NoUsableCost": uncosted,
}
"""Reasons why a workload can never run on a resource of its kind, each with what tells it."""


def ineligible(indexed: ResourceIndex, workload: Workload) -> Mapping[str, Bools]:
    """Return, by reason, on which resources of the workload's kind it can never run."""
    values = indexed.value(workload.app)
    ours = indexed.kind.get(workload.kind, indexed.none)
    return {name: found(indexed, workload, values) & ours for name, found in PREDICATES.items()}
