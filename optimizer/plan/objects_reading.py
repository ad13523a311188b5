"""The objects of a request as they were read, and whether they read the same now.

Between two looks at a fleet, mostly nothing but scores changes.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from optimizer.domain.settings import OptimizerSettings
from optimizer.plan.basis import Basis, basis_of
from optimizer.snapshot.fleet_snapshot import FleetReader, FleetSnapshot, read_objects
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest


@dataclass(frozen=True)
class ObjectsReading:
    """The fleet that objects make for a request, without scores."""

    observation: Observation
    request: OptimizeRequest
    settings: OptimizerSettings
    snapshot: FleetSnapshot

    @cached_property
    def basis(self) -> Basis:
        """What must not change until a plan of it is applied."""
        return basis_of(self.snapshot.fleet, self.snapshot.pools)

    @property
    def until(self) -> datetime | None:
        """When a toleration ends, so that these objects read differently; None: none does."""
        lasts = self.snapshot.lasts
        known = not math.isinf(lasts)
        return self.observation.observed_at + timedelta(seconds=lasts) if known else None

    def holds(
        self, observation: Observation, request: OptimizeRequest, settings: OptimizerSettings
    ) -> bool:
        """Return whether these objects read the same: they are equal, and no toleration ended."""
        passed = (observation.observed_at - self.observation.observed_at).total_seconds()
        return (
            0 <= passed < self.snapshot.lasts
            and (request, settings) == (self.request, self.settings)
            and observation.has_objects_of(self.observation)
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
        return last
    read = read_objects(observation, request, settings)
    return ObjectsReading(observation, request, settings, read)
