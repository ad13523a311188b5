"""The change of each kind of limit that a sizing problem asks for.

In a sizing problem a limit has a price instead of a bound: `widened` and
`priced_use` state it, and `limit_change` reads the change from its best decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce, singledispatch
from math import ceil, inf
from typing import Any

import numpy as np

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import listed
from optimizer.candidates.further_layouts import FurtherLayout, gpu_names
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Supply, Workload
from optimizer.domain.solution import Assignment, Decision
from optimizer.explain.conflicts.feasibility import (
    WORTH,
    FeasibilityOracle,
    all_placed,
    check_feasibility,
    feasibility_problem,
    replica_counts,
    required_without,
    without_costs,
)
from optimizer.explain.conflicts.fleet_changes import (
    AddedSupply,
    LimitChange,
    doubling_steps,
    layout_words,
    missing_scores,
    supply_step,
    useful_amount,
    with_candidates,
    with_cluster,
    with_limit,
    with_scores,
    with_supplies,
    with_workload,
    without_workload,
)
from optimizer.explain.conflicts.limits import (
    CandidateLayouts,
    FleetWideLimit,
    MissingScores,
    RelaxableLimit,
    RequiredReplicas,
    RunningWorkload,
    SuppliedCapacity,
    WorkloadConstraint,
    relaxed,
)
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

GIVEN_UP = 1.0
"""Size of dropping a constraint of a workload; other sizes are shares of the present limit."""

STOPPED = 2.0
"""Size of stopping another workload: worse than dropping a constraint."""

FREED = 0.01
"""Size of freeing a GPU for another layout: little, because nothing is bought or given up."""

_UNLIMITED = 1e15
"""A fleet-wide limit that no use reaches."""

_SMALLEST = 1e-9
"""Guards divisions by amounts that can be 0."""

_ADDED = "added"
"""Prefix of the candidates that stand for steps of supply; no Policy has a slash in its name."""


LimitChanges = tuple[LimitChange, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """The best decision of a sizing problem; `fleet` has the limits as they are."""

    fleet: Fleet
    required: RequiredReplicas
    problem: Problem
    decision: Decision

    @property
    def target(self) -> Workload:
        """The workload to place."""
        return next(item for item in self.fleet.workloads if item.name == self.required.workload)

    @property
    def assignments(self) -> list[Assignment]:
        """The assignments of the workload to place."""
        placed = self.decision.assignments
        return [item for item in placed if item.workload == self.required.workload]


def widened(limit: RelaxableLimit, fleet: Fleet, price: float) -> Fleet:
    """Return the fleet in which a limit has a price: `price` for its largest change."""
    match limit:
        case SuppliedCapacity():
            return with_cluster(fleet, limit.cluster, partial(_with_steps, fleet, limit, price))
        case CandidateLayouts():
            most = 1 + max(len(item.freed) for item in limit.further)
            priced = (
                replace(item.policy, cost=price * (1 + len(item.freed)) / most / 2)
                for item in limit.further
            )
            return with_candidates(fleet, limit.cluster, priced)
        case FleetWideLimit():
            return with_limit(fleet, limit.name, _UNLIMITED)
    return limit.relax(fleet)


def priced_use(limit: RelaxableLimit, problem: Problem, required: RequiredReplicas) -> Floats:
    """Return each assignment's use of a limit, at most 1 over all assignments of a decision."""
    use, replicas = np.zeros(problem.values.shape), sum(i.replicas for i in problem.workloads)
    match limit:
        case WorkloadConstraint(field="minimum_score"):
            # How far each of the workload's values lies below its best one.
            number = problem.workload_index[required.workload]
            low, high = (float(of(problem.values[number])) for of in (np.nanmin, np.nanmax))
            below = high - np.nan_to_num(problem.values[number], nan=high)
            use[number] = below / max(_SMALLEST, high - low) / replicas
        case FleetWideLimit():
            own = (item.of_assignments() for item in problem.limits if _is(limit, item.name))
            total = sum(own, use)
            use = total / max(_SMALLEST, float(total.max(initial=0.0)) * replicas)
    return use


@singledispatch
def limit_change(limit: RelaxableLimit, _sizing: Sizing) -> LimitChange | None:
    """Return the change of a limit that a decision needs; None: the limit may stay."""
    return LimitChange(f"drop the constraint: {limit.message}", limit.relax, GIVEN_UP)


def added_supply(limit: SuppliedCapacity, fleet: Fleet, amount: float) -> AddedSupply:
    """Return so much more of the device on the cluster."""
    own = next(item for item in fleet.clusters if item.name == limit.cluster)
    by_policy = any(item.kind == limit.kind for one in own.candidates for item in one.supplies)
    # The supply of one policy is lost with the policy; an addition is not.
    whatever = ", available whichever policy it enforces" if by_policy else ""
    what = f"{format_quantity(amount)} {limit.kind} {limit.device}".strip()
    supply = Supply(limit.kind, limit.device, amount)
    return AddedSupply(
        f"add {what} to cluster {limit.cluster}{whatever}",
        partial(with_supplies, cluster=limit.cluster, added=(supply,)),
        amount / useful_amount(fleet, limit.kind),
        limit.cluster,
        supply,
    )


def _prefix(limit: SuppliedCapacity) -> str:
    return f"{_ADDED}/{limit.kind}/{limit.device}/"


def _with_steps(fleet: Fleet, limit: SuppliedCapacity, price: float, cluster: Cluster) -> Cluster:
    """Return the cluster with steps of more supply, as candidates that have a cost."""
    total = useful_amount(fleet, limit.kind)
    steps = (
        CandidatePolicy(
            f"{_prefix(limit)}{number}",
            (Supply(limit.kind, limit.device, amount),),
            pool=f"{_prefix(limit)}{number}",
            cost=price * amount / total / 2,
        )
        for number, amount in enumerate(doubling_steps(fleet, limit.kind))
    )
    return replace(cluster, candidates=(*cluster.candidates, *steps))


@limit_change.register
def _weaker_constraint(limit: WorkloadConstraint, sizing: Sizing) -> LimitChange | None:
    """Return a change of the clusters or of the minimum; other constraints are given up."""
    if limit.field == "minimum_score":
        return _lower_minimum(limit, sizing)
    if limit.field in {"clusters", "excluded_clusters", "unselectable"}:
        return _more_clusters(limit, sizing)
    return LimitChange(f"drop the constraint: {limit.message}", limit.relax, GIVEN_UP)


_BARRED = {
    "excluded_clusters": ", which it excludes",
    "unselectable": ", which OCM can't select for it: see the issues of the plan",
}


def _more_clusters(limit: WorkloadConstraint, sizing: Sizing) -> LimitChange | None:
    """Return which clusters to add to those named, or to exclude no longer."""
    target, used = sizing.target, [item.cluster for item in sizing.assignments]
    if limit.field == "clusters":
        added, how = [item for item in used if item not in target.clusters], " too"
        left = (*target.clusters, *added)
    else:
        excluded = getattr(target, limit.field)
        how = _BARRED[limit.field]
        added = [item for item in excluded if item in used]
        left = tuple(item for item in excluded if item not in used)
    if not added:
        return None
    message = f"let workload {limit.workload} run on {listed(added)}{how}"
    changed: dict[str, Any] = {limit.field: left}
    apply = partial(with_workload, name=limit.workload, **changed)
    return LimitChange(message, apply, GIVEN_UP)


def _lower_minimum(limit: WorkloadConstraint, sizing: Sizing) -> LimitChange | None:
    """Return the highest minimum that the decision meets."""
    before, name = sizing.target.minimum_score or 0.0, limit.workload
    least = min(map(sizing.problem.score, sizing.assignments), default=before)
    if least >= before:
        return None
    message = f"lower the minimum of workload {name} from {before:g} to {least:g}"
    apply = partial(with_workload, name=name, minimum_score=least)
    return LimitChange(message, apply, min(GIVEN_UP, (before - least) / max(abs(before), 1.0)))


@limit_change.register
def _fewer_replicas(limit: RunningWorkload, sizing: Sizing) -> LimitChange:
    """Return on how many clusters fewer another workload runs."""
    name, before = limit.workload, sizing.required.counts[limit.workload]
    left = min(replica_counts(sizing.decision).get(name, 0), before - 1)
    if left:
        message = f"run workload {name} on {left} clusters instead of {before}"
        return LimitChange(message, partial(with_workload, name=name, replicas=left), STOPPED)
    return LimitChange(f"stop workload {name}", partial(without_workload, name=name), STOPPED)


@limit_change.register
def _more_supply(limit: SuppliedCapacity, sizing: Sizing) -> LimitChange | None:
    """Return how much supply to add."""
    problem = sizing.problem
    steps = (
        problem.policies[problem.policy_index[item]]
        for item in sizing.decision.policies
        if item.cluster == limit.cluster and item.policy.startswith(_prefix(limit))
    )
    amount = sum(supply for step in steps for _, supply in step.supplies)
    return added_supply(limit, sizing.fleet, amount) if amount else None


@limit_change.register
def _another_layout(limit: CandidateLayouts, sizing: Sizing) -> LimitChange | None:
    """Return the policy with the layout that the decision has."""
    chosen = {item.policy for item in sizing.decision.policies if item.cluster == limit.cluster}
    for item in limit.further:
        if item.policy.policy in chosen:
            apply = partial(_with_layout, limit.cluster, item)
            return LimitChange(_layout_change(limit.cluster, item), apply, FREED * len(item.freed))
    return None


def _with_layout(cluster: str, layout: FurtherLayout, fleet: Fleet) -> Fleet:
    """Return the fleet as the optimizer reads it after the change, the policy included."""
    made = with_candidates(fleet, cluster, (layout.policy,))
    return layout.regenerate(made) if layout.freed else made


def _layout_change(cluster: str, item: FurtherLayout) -> str:
    gpus: dict[str, list[str]] = {}
    for name, layout in item.divided:
        gpus.setdefault(layout_words(layout), []).append(name)
    layouts = ", ".join(f"{gpu_names(names)} {words}" for words, names in gpus.items())
    if item.freed:
        freed = f"free {gpu_names(item.freed)} of cluster {cluster}"
        return f"{freed}, so that a policy can be enforced with {layouts}"
    return f"add a candidate policy to cluster {cluster}, with {layouts}"


@limit_change.register
def _higher_limit(limit: FleetWideLimit, sizing: Sizing) -> LimitChange | None:
    """Return the value that the decision needs; None where it needs no higher one."""
    before = next(item.most for item in sizing.fleet.limits if item.name == limit.name)
    problem, uses = sizing.problem, [0.0]
    found = problem.indexes_of(sizing.decision.assignments)
    policies = [problem.policy_index[item] for item in sizing.decision.policies]
    for row in problem.limits:
        if _is(limit, row.name):
            used = row.of_assignments()
            uses.append(sum(float(used[at]) for at in found) + float(row.policies[policies].sum()))
    most = max(uses)
    if most <= before:
        return None
    message = f"raise {limit.name} from {format_quantity(before)} to {format_quantity(most)}"
    apply = partial(with_limit, name=limit.name, most=most)
    return LimitChange(message, apply, (most - before) / max(before, _SMALLEST))


def _is(limit: FleetWideLimit, row: str) -> bool:
    return row == limit.name or row.startswith(f"{limit.name} where ")


@limit_change.register
def _delivered_scores(_limit: MissingScores, sizing: Sizing) -> LimitChange:
    """Return which scores have to be delivered."""
    target = sizing.target
    used = {(item.cluster, target.app, item.device) for item in sizing.assignments}
    lacking = [item for item in missing_scores(sizing.fleet, target) if item[1] in used]
    where = ", ".join(
        f"{name} for {app} on {device or 'the kind'} of cluster {cluster}"
        for name, (cluster, app, device) in lacking
    )
    apply = partial(with_scores, missing=tuple(lacking))
    return LimitChange(f"deliver a score: {where}", apply, GIVEN_UP)


_PRICES = 0.4
"""All prices together, as a share of what one assignment is worth: less than a half, which is how
far the objective may be from the worth of all (`feasibility.all_placed`)."""

_KEPT = 1e-3
"""What keeping a workload that may stop is worth: less than any step of supply costs."""

_ROUNDING = 1e-9


def rank(changes: LimitChanges) -> tuple[int, float]:
    """Return what repairs are ordered by: the number of changes, then their total size."""
    return len(changes), sum(item.size for item in changes)


def lacking_supply(oracle: FeasibilityOracle, relaxing: Iterable[RelaxableLimit]) -> float:
    """Return how much supply is lacking; infinity where that is not known."""
    return sum(oracle.lacking.get(id(item), inf) for item in relaxing)


def least_changes(
    oracle: FeasibilityOracle, limits: Sequence[RelaxableLimit]
) -> LimitChanges | None:
    """Return the least changes of these limits that make room; None where there are none.

    The sum of their relative sizes is least. Raises BudgetExceeded.
    """
    oracle.check_time()
    (single, *others) = limits
    if isinstance(single, SuppliedCapacity) and not others:
        return _least_supply(oracle, single)
    required, needed = oracle.required, required_without(oracle.required, limits)
    wide = formulate(_priced(oracle.fleet, limits, needed))
    if not set(needed) <= set(wide.workload_index):
        return None
    solution = oracle.solve(_sizing_problem(wide, required, limits, needed))
    if not all_placed(solution, sum(needed.values())):
        return None
    sizing = Sizing(oracle.fleet, required, wide, solution.decision)
    made = (limit_change(limit, sizing) for limit in limits)
    return tuple(item for item in made if item is not None)


def _least_supply(oracle: FeasibilityOracle, limit: SuppliedCapacity) -> LimitChanges | None:
    """Return the least supply of one device that makes room, found by bisection.

    It takes about half of the solves that the sizing problem takes, which would find the same.
    """
    fleet, counts = oracle.fleet, oracle.required.counts
    step, lacking = supply_step(fleet, limit.kind), lacking_supply(oracle, [limit])
    most = ceil(min(lacking, useful_amount(fleet, limit.kind)) / step - _ROUNDING)
    low, high = 0, max(1, most)

    def suffices(steps: int) -> bool:
        changed = added_supply(limit, fleet, steps * step).apply(fleet)
        problem = feasibility_problem(changed, counts)
        return problem is not None and bool(check_feasibility(problem, counts, oracle.solve))

    if lacking == inf and not suffices(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return (added_supply(limit, fleet, high * step),)


def _priced(fleet: Fleet, limits: Sequence[RelaxableLimit], needed: Mapping[str, int]) -> Fleet:
    """Return the fleet in which the limits that have an amount have a price, others are dropped."""
    wide = without_costs(relaxed(fleet, [item for item in limits if not item.sized]), needed)
    sized = (item for item in limits if item.sized)
    return reduce(lambda made, item: widened(item, made, _price(limits)), sized, wide)


def _price(limits: Sequence[RelaxableLimit]) -> float:
    """Return what the largest change of one limit costs."""
    return _PRICES * WORTH / len(limits)


def _sizing_problem(
    wide: Problem,
    required: RequiredReplicas,
    limits: Sequence[RelaxableLimit],
    needed: Mapping[str, int],
) -> Problem:
    """Return the problem whose optimum has all that is needed at the least price."""
    freed = {item.keeps_running for item in limits}
    each = dict.fromkeys(needed, WORTH) | dict.fromkeys(freed, _KEPT)
    worth = np.array([each.get(item.name, 0.0) for item in wide.workloads])
    values = np.where(np.isnan(wide.values), np.nan, worth[:, np.newaxis])
    for item in limits:
        values = values - _price(limits) * priced_use(item, wide, required)
    return replace(wide, values=values)
