"""Why each workload runs where it does, or nowhere."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from optimizer.fleet import Fleet, Supply, Workload
from optimizer.problem import Problem
from optimizer.request import OptimizeRequest
from optimizer.results import Gap, Placed, Unplaced
from optimizer.solution import Solution


def placed(problem: Problem, solution: Solution) -> tuple[Placed, ...]:
    """Return every place taken, with the policy that supplies it and its score."""
    policies = dict(solution.decision.choices)
    return tuple(
        Placed(
            workload=place.workload,
            cluster=place.cluster,
            policy=policies[place.cluster],
            device=place.device,
            score=problem.values[place],
        )
        for place in solution.decision.places
    )


def unplaced(
    request: OptimizeRequest, fleet: Fleet, problem: Problem, solution: Solution
) -> tuple[Unplaced, ...]:
    """Return every workload of the request without a place, and the first thing in its way."""
    taken = {place.workload for place in solution.decision.places}
    gaps = {gap.workload: gap for gap in fleet.gaps if gap.workload}
    workloads = {workload.name: workload for workload in fleet.workloads}
    values = _values(problem)
    return tuple(
        _from_gap(gaps[choice.name])
        if choice.name in gaps
        else _why(workloads[choice.name], fleet, values[choice.name], solution)
        for choice in request.target_workloads
        if choice.name not in taken
    )


def _from_gap(gap: Gap) -> Unplaced:
    return Unplaced(workload=gap.workload, reason=gap.reason, message=gap.message)


def _values(problem: Problem) -> defaultdict[str, list[float]]:
    values = defaultdict[str, list[float]](list)
    for place, value in problem.values.items():
        values[place.workload].append(value)
    return values


def _why(workload: Workload, fleet: Fleet, values: Sequence[float], solution: Solution) -> Unplaced:
    if not values:
        return _impossible(workload, fleet)
    if solution.status == "NotSolved":
        return _unplaced(workload, "NotSolved", "the solver found no placement within its limits")
    if max(values) < 0:
        message = f"its best score is {max(values):g}: placing it would lower the total"
        return _unplaced(workload, "ScoresBelowZero", message)
    found = "the optimal placement" if solution.status == "Optimal" else "the best placement found"
    message = (
        f"{len(values)} places would fit it alone, but {found} uses those devices for others or"
        " enforces policies that supply none for it"
    )
    return _unplaced(workload, "NoCapacityLeft", message)


def _impossible(workload: Workload, fleet: Fleet) -> Unplaced:
    wanted = f"{workload.amount} {workload.kind}"
    supplies = [
        (supply, cluster.name)
        for cluster in fleet.clusters
        for supply in cluster.supplies
        if supply.kind == workload.kind
    ]
    if any(supply.amount >= workload.amount for supply, _ in supplies):
        message = "policies supply enough for it, but no usable score says what it is worth there"
        return _unplaced(workload, "NoUsableScore", f"{message}; see gaps")
    if not supplies:
        message = f"no candidate policy supplies {workload.kind}, of which it asks {wanted}"
        return _unplaced(workload, "NoSupply", message)
    supply, cluster = max(supplies, key=lambda pair: pair[0].amount)
    return _unplaced(workload, "NoSupply", f"it asks {wanted}; {_most(supply, cluster)}")


def _most(supply: Supply, cluster: str) -> str:
    return (
        f"the most that a candidate policy supplies is {supply.amount} of {supply.device}"
        f" ({supply.policy} on cluster {cluster})"
    )


def _unplaced(workload: Workload, reason: str, message: str) -> Unplaced:
    return Unplaced(
        workload=workload.name, reason=reason, message=f"workload {workload.name}: {message}"
    )


def truncated(gaps: tuple[Gap, ...], *, most: int) -> Iterator[Gap]:
    """Yield the first gaps and, where there are more, one that says how many."""
    yield from gaps[:most]
    if len(gaps) > most:
        yield Gap(reason="Truncated", message=f"{len(gaps) - most} more gaps are not shown")
