"""The placement problem: only what could be used gets a variable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optimizer.fleet import Cluster, Fleet, Supply, Workload
from optimizer.solution import Choice, Decision, Place, Variable


@dataclass(frozen=True, slots=True)
class Problem:
    """Candidates of a fleet, in the order of the request.

    `supplies`: what each policy choice supplies. `values`: the score of each place. `demands`:
    the request of each workload that has a place.
    """

    supplies: Mapping[Choice, Supply]
    demands: Mapping[str, Workload]
    values: Mapping[Place, float]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every binary variable."""
        return (*self.supplies, *self.values)


def formulate(fleet: Fleet) -> Problem:
    """Return the problem of a fleet.

    A place needs a usable score and one policy that supplies enough of its device by itself; a
    policy needs a place that it serves.
    """
    values = {
        Place(workload.name, cluster.name, device): fleet.scores[cluster.name, workload.app, device]
        for workload in fleet.workloads
        for cluster in fleet.clusters
        for device in _devices(cluster, workload)
        if (cluster.name, workload.app, device) in fleet.scores
    }
    placeable = {place.workload for place in values}
    demands = {item.name: item for item in fleet.workloads if item.name in placeable}
    served = {(place.cluster, demands[place.workload].kind, place.device) for place in values}
    supplies = {
        Choice(cluster.name, supply.policy): supply
        for cluster in fleet.clusters
        for supply in cluster.supplies
        if (cluster.name, supply.kind, supply.device) in served
    }
    return Problem(supplies, demands, values)


def objective(problem: Problem, decision: Decision) -> float:
    """Return the value of a decision: the sum of the scores of its places."""
    return float(sum(problem.values[place] for place in decision.places))


def upper_bound(problem: Problem) -> float:
    """Return a value that no decision exceeds: every workload at its best place, if worth it."""
    best: dict[str, float] = {}
    for place, value in problem.values.items():
        best[place.workload] = max(best.get(place.workload, 0.0), value)
    return float(sum(best.values()))


def serves(supply: Supply, workload: Workload, device: str) -> bool:
    """Tell whether a supply alone is enough for a workload on a device."""
    return (
        supply.kind == workload.kind
        and supply.device == device
        and supply.amount >= workload.amount
    )


def _devices(cluster: Cluster, workload: Workload) -> Iterator[str]:
    devices = dict.fromkeys(supply.device for supply in cluster.supplies)
    for device in devices:
        if any(serves(supply, workload, device) for supply in cluster.supplies):
            yield device
