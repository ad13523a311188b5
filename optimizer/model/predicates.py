"""Reasons why a workload can never run somewhere, each one a named function.

What can be told of one workload and one cluster is an obstacle; what couples several is a rule.
"""

from collections.abc import Callable, Mapping

import numpy as np

from optimizer.domain.fleet import Workload
from optimizer.model.problem import ANY, Bools, Floats, Slot
from optimizer.model.slot_index import Ground

Obstacle = Callable[[Ground, Workload, Floats], Bools]


def pinned(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The workload may run on clusters that are named for it alone, and not on this one."""
    return ~ground.named(workload.clusters) if workload.clusters else ground.none


def excluded(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster is excluded by the workload."""
    return ground.named(workload.excluded) if workload.excluded else ground.none


def affinity(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels don't meet the workload's affinity."""
    return ~ground.meeting(workload.affinity) if workload.affinity else ground.none


def anti_affinity(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels meet the workload's anti-affinity."""
    return ground.meeting(workload.anti_affinity) if workload.anti_affinity else ground.none


def too_small(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """No policy, with what the cluster has anyway, supplies enough of the device."""
    return ground.most < workload.amount


def extras_too_small(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster can't have enough of a further kind that the workload asks for."""
    if not workload.extras:
        return ground.none
    lacking = np.zeros(len(ground.fleet.clusters), dtype=np.bool_)
    for kind, amount in workload.extras:
        for index in range(len(lacking)):
            slot = ground.number.get(Slot(index, kind, ANY))
            lacking[index] |= slot is None or ground.most[slot] < amount
    return lacking[ground.cluster]


def unscored(_: Ground, __: Workload, values: Floats) -> Bools:
    """No usable score says what the place is worth."""
    return np.isnan(values)


def below_minimum(ground: Ground, workload: Workload, values: Floats) -> Bools:
    """The place is worth less than the workload accepts."""
    return ground.none if workload.minimum is None else values < workload.minimum


def uncosted(ground: Ground, workload: Workload, values: Floats) -> Bools:
    """No usable score says what the place takes of a fleet-wide limit."""
    missing = np.zeros(len(values), dtype=np.bool_)
    for limit in ground.fleet.limits:
        if limit.score:
            missing |= np.isnan(ground.scores(limit.score, workload.app)) & ground.meeting(
                limit.selector
            )
    return missing


OBSTACLES: Mapping[str, Obstacle] = {
    "NotPinned": pinned,
    "Excluded": excluded,
    "Affinity": affinity,
    "AntiAffinity": anti_affinity,
    "NoSupply": too_small,
    "NoExtraSupply": extras_too_small,
    "NoUsableScore": unscored,
    "BelowMinimumScore": below_minimum,
    "NoUsableCost": uncosted,
}
"""Reasons why a workload can never run on a slot of its kind, each with what tells it."""


def obstacles(ground: Ground, workload: Workload) -> Mapping[str, Bools]:
    """Return, by reason, on which slots of the workload's kind it can never run."""
    values = ground.value(workload.app)
    ours = ground.kind.get(workload.kind, ground.none)
    return {name: found(ground, workload, values) & ours for name, found in OBSTACLES.items()}
