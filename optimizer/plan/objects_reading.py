"""The objects of a request as they were read, and whether they read the same now.

Between two looks at a fleet, mostly nothing but scores changes.
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from optimizer.domain.settings import OptimizerSettings
from optimizer.plan.basis import Basis, basis_of
from optimizer.snapshot.capacity.node_inventories import expires, only_renewed
from optimizer.snapshot.fleet_snapshot import FleetReader, FleetSnapshot, read_objects
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

    @cached_property
    def _expires(self) -> datetime | None:
        """When the first inventory expires that is relied on."""
        seen = self.observation
        times = (expires(item, seen.observed_at) for item in seen.inventories or ())
        return min(filter(None, times), default=None)

    def holds(
        self, observation: Observation, request: OptimizeRequest, settings: OptimizerSettings
    ) -> bool:
        """Return whether these objects read the same.

        They are equal but for the times of renewed inventories. No toleration ended, and no
        inventory expired.
        """
        seen, now = self.observation, observation.observed_at
        return (
            seen.observed_at <= now
            and all(now < end for end in (self.until, self._expires) if end)
            and (request, settings) == (self.request, self.settings)
            and replace(observation, inventories=seen.inventories).has_objects_of(seen)
            and self._says_the_same(observation)
        )

    def _says_the_same(self, observation: Observation) -> bool:
        """Return whether inventories say the same as those that were read."""
        settled, seen = self.snapshot.settled, self.observation
        before, after = seen.inventories or (), observation.inventories or ()
        if settled is None or len(before) != len(after):
            return before == after
        return all(
            only_renewed(
                old, new, settled=settled, then=seen.observed_at, now=observation.observed_at
            )
            for old, new in zip(before, after, strict=True)
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
