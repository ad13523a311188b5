"""The objects of a request as they were read, and whether they read the same now.

Between two looks at a fleet, mostly nothing but scores changes.
"""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from optimizer.domain.settings import OptimizerSettings
from optimizer.plan.basis import Basis, basis_of
from optimizer.snapshot.capacity.node_inventories import says_the_same
from optimizer.snapshot.fleet_reader import FleetReader
from optimizer.snapshot.fleet_snapshot import FleetSnapshot, read_objects
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest


@dataclass(frozen=True)
class ObjectsReading:
    """The fleet that objects make for a request, without scores.

    `until`: when a toleration or the grace of pending Pods ends, so that the same objects read
    differently; None: never.
    """

    observation: Observation
    request: OptimizeRequest
    settings: OptimizerSettings
    snapshot: FleetSnapshot
    until: datetime | None

    @cached_property
    def basis(self) -> Basis:
        """What must not change until a plan of it is applied."""
        return basis_of(self.snapshot.fleet, self.snapshot.pools)

    def holds(
        self, observation: Observation, request: OptimizeRequest, settings: OptimizerSettings
    ) -> bool:
        """Return whether these objects read the same.

        They are equal but for the times of renewed inventories. No toleration ended, and no
        inventory expired.
        """
        seen, then, now = self.observation, self.observation.observed_at, observation.observed_at
        both = seen.inventories or (), observation.inventories or ()
        settled = self.snapshot.settled or datetime.max.replace(tzinfo=UTC)
        return (
            then <= now
            and (self.until is None or now < self.until)
            and (request, settings) == (self.request, self.settings)
            and replace(observation, inventories=seen.inventories).has_objects_of(seen)
            and len(both[0]) == len(both[1])
            and all(says_the_same(*pair, settled, then, now) for pair in zip(*both, strict=True))
        )


class FleetReading(NamedTuple):
    """The fleet of a request, and what it was read from; the next reading may begin with it.

    `objects`: the fleet without scores. `scores`: who read them.
    """

    observation: Observation
    request: OptimizeRequest
    objects: ObjectsReading
    scores: FleetReader
    snapshot: FleetSnapshot


def objects_reading(
    observation: Observation,
    request: OptimizeRequest,
    settings: OptimizerSettings,
    last: ObjectsReading | None = None,
) -> ObjectsReading:
    """Return the reading of objects that a request names, which all exist.

    That is the last one where it holds, since it is compared much sooner than made.
    """
    if last is not None and last.holds(observation, request, settings):
        same = observation.inventories == last.observation.inventories
        return last if same else replace(last, observation=observation)
    read = read_objects(observation, request, settings)
    ends = not math.isinf(read.lasts)
    until = observation.observed_at + timedelta(seconds=read.lasts) if ends else None
    return ObjectsReading(observation, request, settings, read, until)
