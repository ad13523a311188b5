"""How much of each limit must change, once it is known which ones must."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from math import ceil, gcd, inf, lcm

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Supply, Workload
from optimizer.domain.quantity import spelt
from optimizer.domain.solution import Decision
from optimizer.explain.conflicts.feasibility_check import check_feasibility
from optimizer.explain.conflicts.feasibility_problem import (
    WORTH,
    all_placed,
    feasibility_problem,
    replica_counts,
    required_without,
    without_costs,
)
from optimizer.explain.conflicts.relaxable_limits import (
    FleetChange,
    RelaxableLimit,
    RequiredReplicas,
    asked,
    enough,
    missing_scores,
    relaxed,
    with_cluster,
    with_scores,
    with_supply,
    with_workload,
)
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

GIVEN_UP = 1.0
STOPPED = 2.0
_PENALTIES = 0.4  # of what one place is worth: less than what tells one place more from none
_MOST_STEPS = 2**12
_ADDED = "added"
_UNLIMITED = 1e15
_ROUNDING = 1e-9
_KEPT = 1e-3  # less than any step of supply costs


@dataclass(frozen=True, slots=True, eq=False)
class LimitChange:
    """A change in words, what it does to a fleet, and its size."""

    says: str
    apply: FleetChange
    size: float


def least_changes(
    fleet: Fleet,
    wanted: RequiredReplicas,
    relaxing: Sequence[RelaxableLimit],
    resolve: ProblemSolver,
    lacking: float = inf,
) -> tuple[LimitChange, ...] | None:
    """Return the least changes of these limits that make room; None where there is none.

    Amounts are least together, each relative to what all workloads could use of it. `lacking`: so
    much of the supply that they are of is known to be enough.
    """
    if len(relaxing) == 1 and relaxing[0].rule == "capacity":
        return _least_supply(fleet, wanted, relaxing[0], resolve, lacking)
    needed = required_without(wanted, relaxing)
    wide = formulate(_wide(fleet, relaxing, needed))
    if not set(needed) <= set(wide.workload_index):
        return None
    problem = _sizing(wide, wanted, relaxing, needed)
    solution = resolve(problem)
    if not all_placed(solution, sum(needed.values())):
        return None
    made = (_amended(fleet, wanted, item, wide, solution.decision) for item in relaxing)
    return tuple(item for item in made if item is not None)


def _least_supply(
    fleet: Fleet,
    wanted: RequiredReplicas,
    barrier: RelaxableLimit,
    resolve: ProblemSolver,
    lacking: float,
) -> tuple[LimitChange, ...] | None:
    """Return the least supply of one device that makes room, found by halving."""
    kind, unit = barrier.subject[1], _step(fleet, barrier.subject[1])
    none, most = 0, max(1, ceil(min(lacking, enough(fleet, kind)) / unit - _ROUNDING))

    def suffices(units: int) -> bool:
        changed = _supplied(fleet, barrier, units * unit).apply(fleet)
        problem = feasibility_problem(changed, wanted.counts)
        return problem is not None and bool(check_feasibility(problem, wanted.counts, resolve))

    if lacking == inf and not suffices(most):
        return None
    while most - none > 1:
        half = (none + most) // 2
        none, most = (none, half) if suffices(half) else (half, most)
    return (_supplied(fleet, barrier, most * unit),)


def _wide(fleet: Fleet, relaxing: Sequence[RelaxableLimit], needed: Mapping[str, int]) -> Fleet:
    """Return the fleet without these limits, in which supplies have a price instead."""
    wide = without_costs(relaxed(fleet, [item for item in relaxing if not _sized(item)]), needed)
    for item in relaxing:
        wide = _widened(wide, item, _share(relaxing))
    return wide


def _share(relaxing: Sequence[RelaxableLimit]) -> float:
    """Return what the largest change of one limit costs."""
    return _PENALTIES * WORTH / len(relaxing)


def _sizing(
    wide: Problem,
    wanted: RequiredReplicas,
    relaxing: Sequence[RelaxableLimit],
    needed: Mapping[str, int],
) -> Problem:
    """Return the problem that has all that is needed with the least change of limits."""
    freed = {item.keeps_running for item in relaxing}
    each = dict.fromkeys(needed, WORTH) | dict.fromkeys(freed, _KEPT)
    worth = np.array([each.get(task.name, 0.0) for task in wide.workloads])
    values = np.where(np.isnan(wide.values), np.nan, worth[:, np.newaxis])
    most = sum(task.replicas for task in wide.workloads)  # company that is wanted near counts too
    for item in relaxing:
        values = values - _share(relaxing) * _cost(wide, wanted, item, most)
    return replace(wide, values=values)


def _sized(barrier: RelaxableLimit) -> bool:
    return barrier.rule in ("capacity", "limits")


def _widened(fleet: Fleet, barrier: RelaxableLimit, share: float) -> Fleet:
    """Let a capacity grow by priced steps, and a fleet-wide limit without end."""
    if barrier.rule == "limits":
        return _limited(barrier.subject[0], _UNLIMITED, fleet)
    if barrier.rule != "capacity":
        return fleet
    cluster, kind, device = barrier.subject
    total = enough(fleet, kind)
    added = tuple(
        CandidatePolicy(
            f"{_ADDED}/{kind}/{device}/{index}",
            (Supply(kind, device, amount),),
            pool=f"{_ADDED}/{kind}/{device}/{index}",
            cost=share * amount / total / 2,
        )
        for index, amount in enumerate(_steps(fleet, kind))
    )
    return with_cluster(fleet, cluster, partial(_with_candidates, added))


def _with_candidates(added: tuple[CandidatePolicy, ...], cluster: Cluster) -> Cluster:
    return replace(cluster, candidates=(*cluster.candidates, *added))


def _steps(fleet: Fleet, kind: str) -> Iterator[float]:
    """Yield unit, 2 units, 4 units ... that together are enough for all workloads."""
    step = _step(fleet, kind)
    while step < 2 * enough(fleet, kind):
        yield step
        step *= 2


def _step(fleet: Fleet, kind: str) -> float:
    """Return the amount of which supplies are added."""
    amounts = [amount for item in fleet.workloads for amount in asked(item, kind) if amount > 0]
    amounts += [s.amount for c in fleet.clusters for s in _all(c) if s.kind == kind]
    return max(_unit(amounts), enough(fleet, kind) / _MOST_STEPS)


def _all(cluster: Cluster) -> Iterator[Supply]:
    yield from cluster.base
    for candidate in cluster.candidates:
        yield from candidate.supplies


def _unit(amounts: Iterable[float]) -> float:
    """Return the largest amount of which all are multiples."""
    parts = [Fraction(amount).limit_denominator(1000) for amount in amounts if amount > 0]
    if not parts or min(parts) == 0:
        return min((amount for amount in amounts if amount > 0), default=1.0)
    below = lcm(*(part.denominator for part in parts))
    return float(Fraction(gcd(*(int(part * below) for part in parts)), below))


def _cost(
    problem: Problem, wanted: RequiredReplicas, barrier: RelaxableLimit, places: int
) -> Floats:
    """Return what to subtract from each place, at most 1 over all places of a decision."""
    if barrier.rule == "limits":
        named = (item for item in problem.limits if _is(item.name, barrier.subject[0]))
        total = sum(item.of_assignments() for item in named)
        return np.asarray(total / max(1e-9, float(np.max(total, initial=0.0)) * places))
    if barrier.rule == "minimum":
        task = problem.workload_index[wanted.workload]
        row = problem.values[task]
        low, high = float(np.nanmin(row)), float(np.nanmax(row))
        cost = np.zeros(problem.values.shape)
        cost[task] = (high - np.nan_to_num(row, nan=high)) / max(1e-9, high - low) / places
        return cost
    return np.zeros(1)


def _is(limit: str, name: str) -> bool:
    return limit == name or limit.startswith(f"{name} where ")


def _amended(
    fleet: Fleet,
    wanted: RequiredReplicas,
    barrier: RelaxableLimit,
    problem: Problem,
    decision: Decision,
) -> LimitChange | None:
    makers: Mapping[str, Callable[[], LimitChange | None]] = {
        "capacity": lambda: _more_supply(fleet, barrier, problem, decision),
        "limits": lambda: _higher_limit(fleet, barrier, problem, decision),
        "minimum": lambda: _lower_minimum(fleet, wanted, problem, decision),
        "runs": lambda: _fewer_replicas(wanted, barrier, decision),
        "pinned": lambda: _more_clusters(fleet, wanted, decision),
        "excluded": lambda: _fewer_excluded(fleet, wanted, decision),
        "unscored": lambda: _more_scores(fleet, wanted, decision),
    }
    given_up = LimitChange(f"give up: {barrier.says}", barrier.relax, GIVEN_UP)
    return makers.get(barrier.rule, lambda: given_up)()


def _more_supply(
    fleet: Fleet, barrier: RelaxableLimit, problem: Problem, decision: Decision
) -> LimitChange | None:
    cluster, kind, device = barrier.subject
    prefix = f"{_ADDED}/{kind}/{device}/"
    options = [
        problem.policies[problem.policy_index[item]]
        for item in decision.policies
        if item.cluster == cluster and item.policy.startswith(prefix)
    ]
    amount = sum(supply for option in options for _, supply in option.supplies)
    return _supplied(fleet, barrier, amount) if amount else None


def _supplied(fleet: Fleet, barrier: RelaxableLimit, amount: float) -> LimitChange:
    """Return so much more of the supply of a device."""
    cluster, kind, device = barrier.subject
    what = f"{kind} {device}".strip()
    apply = partial(with_supply, cluster=cluster, added=Supply(kind, device, amount))
    says = (
        f"add {spelt(amount)} {what} to cluster {cluster}{_beside_policies(fleet, cluster, kind)}"
    )
    return LimitChange(says, apply, amount / enough(fleet, kind))


def _beside_policies(fleet: Fleet, cluster: str, kind: str) -> str:
    """Return the words that tell the addition from more of what a policy supplies."""
    candidates = next(item.candidates for item in fleet.clusters if item.name == cluster)
    if any(supply.kind == kind for item in candidates for supply in item.supplies):
        return ", available whichever policy it enforces"
    return ""


def _higher_limit(
    fleet: Fleet, barrier: RelaxableLimit, problem: Problem, decision: Decision
) -> LimitChange | None:
    name = barrier.subject[0]
    before = next(item.most for item in fleet.limits if item.name == name)
    uses = [0.0]
    for limit in problem.limits:
        if _is(limit.name, name):
            used = limit.of_assignments()
            places = [problem.indexes(place) for place in decision.assignments]
            total = sum(float(used[at]) for at in places if at is not None)
            total += sum(
                float(limit.policies[problem.policy_index[item]]) for item in decision.policies
            )
            uses.append(total)
    most = max(uses)
    if most <= before:
        return None
    says = f"raise {name} from {spelt(before)} to {spelt(most)}"
    return LimitChange(says, partial(_limited, name, most), (most - before) / max(before, 1e-9))


def _limited(name: str, most: float, fleet: Fleet) -> Fleet:
    limits = (replace(item, most=most) if item.name == name else item for item in fleet.limits)
    return replace(fleet, limits=tuple(limits))


def _lower_minimum(
    fleet: Fleet, wanted: RequiredReplicas, problem: Problem, decision: Decision
) -> LimitChange | None:
    name, before = wanted.workload, _target(fleet, wanted).minimum or 0.0
    found = (problem.indexes(place) for place in decision.assignments if place.workload == name)
    least = min((float(problem.values[at]) for at in found if at is not None), default=before)
    if least >= before:
        return None
    says = f"lower the minimum of workload {name} from {before:g} to {least:g}"
    size = min(GIVEN_UP, (before - least) / max(abs(before), 1.0))
    return LimitChange(says, partial(with_workload, name=name, minimum=least), size)


def _fewer_replicas(
    wanted: RequiredReplicas, barrier: RelaxableLimit, decision: Decision
) -> LimitChange:
    name = barrier.keeps_running
    before, left = wanted.counts[name], replica_counts(decision).get(name, 0)
    left = min(left, before - 1)
    if left:
        says = f"run workload {name} on {left} clusters instead of {before}"
        return LimitChange(says, partial(with_workload, name=name, replicas=left), STOPPED)
    return LimitChange(f"stop workload {name}", partial(_without_workload, name), STOPPED)


def _without_workload(name: str, fleet: Fleet) -> Fleet:
    return replace(fleet, workloads=tuple(w for w in fleet.workloads if w.name != name))


def _more_clusters(
    fleet: Fleet, wanted: RequiredReplicas, decision: Decision
) -> LimitChange | None:
    name, target = wanted.workload, _target(fleet, wanted)
    added = [item for item in _taken(wanted, decision) if item not in target.clusters]
    if not added:
        return None
    clusters = (*target.clusters, *added)
    says = f"let workload {name} run on {', '.join(added)} too"
    return LimitChange(says, partial(with_workload, name=name, clusters=clusters), GIVEN_UP)


def _fewer_excluded(
    fleet: Fleet, wanted: RequiredReplicas, decision: Decision
) -> LimitChange | None:
    name, target, taken = wanted.workload, _target(fleet, wanted), _taken(wanted, decision)
    allowed = [item for item in target.excluded if item in taken]
    if not allowed:
        return None
    left = tuple(item for item in target.excluded if item not in taken)
    says = f"let workload {name} run on {', '.join(allowed)}, which it excludes"
    return LimitChange(says, partial(with_workload, name=name, excluded=left), GIVEN_UP)


def _target(fleet: Fleet, wanted: RequiredReplicas) -> Workload:
    return next(item for item in fleet.workloads if item.name == wanted.workload)


def _taken(wanted: RequiredReplicas, decision: Decision) -> list[str]:
    return [place.cluster for place in decision.assignments if place.workload == wanted.workload]


def _more_scores(fleet: Fleet, wanted: RequiredReplicas, decision: Decision) -> LimitChange:
    target = _target(fleet, wanted)
    taken = {
        (place.cluster, target.app, place.device)
        for place in decision.assignments
        if place.workload == wanted.workload
    }
    lacking = [(name, key) for name, key in missing_scores(fleet, target) if key in taken]
    where = ", ".join(
        f"{name} for {app} on {device or 'the kind'} of cluster {cluster}"
        for name, (cluster, app, device) in lacking
    )
    apply = partial(with_scores, missing=tuple(lacking))
    return LimitChange(f"deliver a score: {where}", apply, GIVEN_UP)


def applied(fleet: Fleet, changes: Iterable[LimitChange]) -> Fleet:
    """Return the fleet after changes."""
    return reduce(lambda made, change: change.apply(made), changes, fleet)
