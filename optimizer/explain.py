"""Why each workload runs where it does, or nowhere."""

from collections.abc import Iterator

import numpy as np

from optimizer.fleet import Fleet, Supply, Workload
from optimizer.problem import Problem, Slot
from optimizer.request import OptimizeRequest
from optimizer.results import Gap, Placed, Unplaced
from optimizer.solution import Decision, Place, Solution


def placed(problem: Problem, solution: Solution) -> tuple[Placed, ...]:
    """Return every place taken, with the policy that supplies it and its score."""
    return tuple(
        Placed(
            workload=place.workload,
            cluster=place.cluster,
            policy=", ".join(_supplying(problem, solution.decision, place)),
            device=place.device,
            score=problem.score(place),
        )
        for place in solution.decision.places
    )


def _supplying(problem: Problem, decision: Decision, place: Place) -> Iterator[str]:
    """Yield the policies enforced that supply a place's device; none where the cluster has it."""
    kind = problem.tasks[problem.task_index[place.workload]].kind
    slot = problem.slot_index[Slot(problem.cluster_index[place.cluster], kind, place.device)]
    for choice in decision.choices:
        supplies = problem.options[problem.option_index[choice]].supplies
        if slot in dict(supplies):
            yield choice.policy


def unplaced(
    request: OptimizeRequest, fleet: Fleet, problem: Problem, solution: Solution
) -> tuple[Unplaced, ...]:
    """Return every workload of the request without a place, and the first thing in its way."""
    taken = {place.workload for place in solution.decision.places}
    gaps = {gap.workload: gap for gap in fleet.gaps if gap.workload}
    workloads = {workload.name: workload for workload in fleet.workloads}
    return tuple(
        _from_gap(gaps[choice.name])
        if choice.name in gaps
        else _why(workloads[choice.name], fleet, problem, solution)
        for choice in request.target_workloads
        if choice.name not in taken
    )


def _from_gap(gap: Gap) -> Unplaced:
    return Unplaced(workload=gap.workload, reason=gap.reason, message=gap.message)


def _why(workload: Workload, fleet: Fleet, problem: Problem, solution: Solution) -> Unplaced:
    task = problem.task_index.get(workload.name)
    if task is None:
        return _impossible(workload, fleet)
    values = problem.values[task]
    usable = values[~np.isnan(values)]
    if solution.status == "NotSolved":
        return _unplaced(workload, "NotSolved", "the solver found no placement within its limits")
    if usable.max() < 0:
        message = f"its best score is {usable.max():g}: placing it would lower the total"
        return _unplaced(workload, "ScoresBelowZero", message)
    found = "the optimal placement" if solution.status == "Optimal" else "the best placement found"
    message = (
        f"{len(usable)} places would fit it alone, but {found} uses those devices for others or"
        " enforces policies that supply none for it"
    )
    return _unplaced(workload, "NoCapacityLeft", message)


def _impossible(workload: Workload, fleet: Fleet) -> Unplaced:
    wanted = f"{workload.amount:g} {workload.kind}"
    supplies = [
        (supply, candidate.policy, cluster.name)
        for cluster in fleet.clusters
        for candidate in cluster.candidates
        for supply in candidate.supplies
        if supply.kind == workload.kind
    ]
    if any(supply.amount >= workload.amount for supply, _, _ in supplies):
        message = "policies supply enough for it, but no usable score says what it is worth there"
        return _unplaced(workload, "NoUsableScore", f"{message}; see gaps")
    if not supplies:
        message = f"no candidate policy supplies {workload.kind}, of which it asks {wanted}"
        return _unplaced(workload, "NoSupply", message)
    supply, policy, cluster = max(supplies, key=lambda found: found[0].amount)
    return _unplaced(workload, "NoSupply", f"it asks {wanted}; {_most(supply, policy, cluster)}")


def _most(supply: Supply, policy: str, cluster: str) -> str:
    return (
        f"the most that a candidate policy supplies is {supply.amount:g} of {supply.device}"
        f" ({policy} on cluster {cluster})"
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
