"""The claims of Pods with the devices of a cluster that match, by its DeviceClasses."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optimizer.domain.dra.allocation import Claims, Wanted, WantedClaim
from optimizer.domain.dra.device_sets import (
    ClaimRequest,
    DeviceClaim,
    DeviceClasses,
    DeviceSet,
    NodeDevices,
)
from optimizer.domain.dra.selectors import DeviceSelectors, NotEvaluated


def device_sets(nodes: Iterable[Iterable[NodeDevices]]) -> tuple[DeviceSet, ...]:
    """Return the different device sets of nodes, in their order."""
    return tuple(dict.fromkeys(state.devices for devices in nodes for state in devices))


@dataclass(frozen=True, slots=True)
class ClusterClaims:
    """Finds the devices of a cluster that claims may get."""

    selectors: DeviceSelectors
    sets: Sequence[DeviceSet]

    @classmethod
    def of(cls, classes: DeviceClasses, nodes: Iterable[Iterable[NodeDevices]]) -> "ClusterClaims":
        """Return those of a cluster with DeviceClasses, and the devices of its nodes."""
        return cls(DeviceSelectors(classes), device_sets(nodes))

    def wanted(self, claims: Iterable[DeviceClaim]) -> Claims | NotEvaluated:
        """Return claims with the devices that match, or why that can't be told."""
        found = []
        for claim in claims:
            requests = []
            for alternatives in claim.requests:
                read = [self._wanted(request) for request in alternatives]
                if failed := next((i for i in read if isinstance(i, NotEvaluated)), None):
                    return failed
                requests.append(tuple(item for item in read if isinstance(item, Wanted)))
            found.append(WantedClaim(tuple(requests), claim.constraints))
        return tuple(found)

    def _wanted(self, request: ClaimRequest) -> Wanted | NotEvaluated:
        matching = []
        for devices in self.sets:
            found = self.selectors.matching(request, devices)
            if isinstance(found, NotEvaluated):
                return found
            matching.append((devices, found))
        return Wanted(request.name, tuple(matching), request.count, request.every)


def first_devices(claims: Claims) -> Iterator[tuple[DeviceSet, int]]:
    """Yield the first device that matches each request, in the order of its alternatives."""
    for request in (request for claim in claims for request in claim.requests):
        matching = (
            (devices, min(indexes))
            for wanted in request
            for devices, indexes in wanted.matching
            if indexes
        )
        yield from [found] if (found := next(matching, None)) else []
