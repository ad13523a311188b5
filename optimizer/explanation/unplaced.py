"""For every workload without a place, or with fewer than it wants: what is in its way."""

from optimizer.explanation.barriers import Wanted, barriers
from optimizer.explanation.conflict import conflict
from optimizer.explanation.forced import lost
from optimizer.explanation.ports import Resolve
from optimizer.explanation.remedy import (
    Search,
    Settled,
    cheapest,
    forced_to_run,
    paying,
    remedy,
)
from optimizer.explanation.requirement import counts, possible
from optimizer.explanation.results import LimitInTheWay, UnplacedReason
from optimizer.fleet import Fleet
from optimizer.problem import Problem
from optimizer.solution import Solution


def short(fleet: Fleet, solution: Solution) -> tuple[str, ...]:
    """Return the workloads that run on fewer clusters than they want, in their order."""
    found = counts(solution.decision)
    return tuple(w.name for w in fleet.workloads if found.get(w.name, 0) < w.replicas)


def unplaced(
    fleet: Fleet, problem: Problem, solution: Solution, workload: str, resolve: Resolve
) -> UnplacedReason:
    """Return why a workload has not one place more, and the cheapest change that gives it one."""
    found = counts(solution.decision)
    wanted = Wanted(workload, {**found, workload: found.get(workload, 0) + 1})
    if wanted.counts[workload] > len(fleet.clusters):
        message = f"it runs on all of the {len(fleet.clusters)} clusters that the request names"
        return UnplacedReason(workload=workload, message=message)
    answer = possible(fleet, wanted, (), resolve)
    if answer is None:
        return UnplacedReason(workload=workload, message="not computed in time")
    if answer:
        return _does_not_pay(fleet, problem, solution, wanted, resolve)
    return _no_room(fleet, solution, wanted, resolve)


def _no_room(fleet: Fleet, solution: Solution, wanted: Wanted, resolve: Resolve) -> UnplacedReason:
    search = Search(fleet, wanted, barriers(fleet, wanted), resolve)
    search.answers.learn(solution.decision)
    if search.possible_with(()) is False:
        message = "no change of the limits that have a name makes room for it"
        return UnplacedReason(workload=wanted.workload, message=message)
    found = conflict(search.named, search.possible_with)
    change = cheapest(search, found.members)
    return UnplacedReason(
        workload=wanted.workload,
        message="these limits together leave no room while everything placed keeps running",
        limits=tuple(LimitInTheWay(rule=item.rule, message=item.says) for item in found.members),
        irreducible=found.irreducible,
        remedy=None if change is None else remedy(wanted, change),
    )


def _does_not_pay(
    fleet: Fleet, problem: Problem, solution: Solution, wanted: Wanted, resolve: Resolve
) -> UnplacedReason:
    """Explain a workload for which there would be room: a better use was found for it."""
    name = wanted.workload
    found = forced_to_run(problem, solution, wanted, resolve)
    if found.lost is None:
        message = "there is room for it; what placing it would cost was not computed in time"
        return UnplacedReason(workload=name, message=message)
    cost = lost(problem, solution.decision, found.decision)
    message = (
        f"there is room for it, but the best solution that has it is worth {cost.total:g} less"
    )
    if cost.total <= 0:
        message = "there is room for it, and a solution with it is worth as much"
    now = Settled((), problem, solution, verified=False)
    change = paying(fleet, now, found, wanted, resolve)
    return UnplacedReason(
        workload=name,
        message=message,
        lost=cost,
        remedy=None if change is None else remedy(wanted, change),
    )
