"""What a run of a scenario yields: where everything ran, and what came of it.

All times are seconds from the start of the scenario.
"""

from collections.abc import Mapping
from typing import Literal

from optimizer.wire.base import ResultPart

MoveReason = Literal["ClusterLost", "BetterScore"]
"""Why a replica was moved: its cluster was lost, or the plan is worth more with it elsewhere."""


class Stay(ResultPart):
    """A replica of a workload that ran on a device of a cluster from a time to another one."""

    workload: str
    cluster: str
    device: str
    begins: float
    ends: float


class Move(ResultPart):
    """A replica that left a cluster where it could have stayed, or that was lost, for another."""

    at: float
    workload: str
    source: str
    target: str
    reason: MoveReason


class Loss(ResultPart):
    """A cluster that was lost with replicas on it, and when all of them ran elsewhere.

    `noticed`: when the hub knew, after the grace of the cluster's Lease, and tainted the cluster.
    `due`: when the toleration of the taint ends, so that OCM takes the replicas away if nobody has
    moved them before. None: the cluster was back. `recovered`: None if some of them ran nowhere
    until the end.
    """

    cluster: str
    at: float
    noticed: float | None
    due: float | None
    replicas: int
    recovered: float | None


class Sample(ResultPart):
    """The fleet at a moment.

    `value`: what all running replicas are worth by the true scores, as the request weighs them.
    `unplaced`: replicas that are wanted and run nowhere.
    """

    at: float
    value: float
    running: int
    unplaced: int


class Played(ResultPart):
    """A run of a scenario. The same scenario and seed give the same bytes of JSON.

    `value_hours`: the integral of the samples' value. `unplaced_minutes`: of all replicas together.
    `totals`: sums of scores that are rates per hour, by the name of the score. `plans`: how many
    were made, `applied`: how many of them were written with changes.
    """

    controller: str
    seed: int
    duration: float
    value_hours: float
    unplaced_minutes: float
    totals: Mapping[str, float]
    plans: int
    applied: int
    moves: tuple[Move, ...]
    losses: tuple[Loss, ...]
    stays: tuple[Stay, ...]
    samples: tuple[Sample, ...]
