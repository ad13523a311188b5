"""Formulates a fleet as a placement problem, and refuses one that would not fit into memory.

Only what can be used gets a variable.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

import numpy as np

from dsf.kube.selectors import valid_selector
from optimizer.domain.arrays import Bools, Floats
from optimizer.domain.fleet import Fleet, FleetLimit, Workload
from optimizer.domain.solution import Decision
from optimizer.model.parameters import NO_DEVICE, ClusterResource, Limit, ProblemWorkload
from optimizer.model.predicates import PREDICATES, FoundOnNodes, ResourceIndex
from optimizer.model.problem import Problem
from optimizer.wire.request_problem import ProblemKind, RequestProblem

PENDING_SHARE = 0.01
"""Part of its value that a place has at least where Pods stay pending; it has that of ready ones.

It is not 0, so that they stay, and start once there is room, rather than have no place at all.
"""


def formulate(fleet: Fleet, found: FoundOnNodes | None = None) -> Problem:
    """Return the problem of a fleet.

    An assignment needs a usable score and a supply that can be enough alone; a policy needs an
    assignment that it serves. Workloads without an assignment are left out. `found` is what earlier
    fleets found on the same nodes, and is added to.
    """
    indexed = ResourceIndex(fleet, {} if found is None else found)
    values = _values(indexed)
    whole = _problem(indexed, values)
    usable = ~np.isnan(values)
    needed = _needed(whole, usable)
    serving = [
        any(resource in needed for resource, _ in policy.supplies) for policy in whole.policies
    ]
    return whole.restricted(usable, np.array(serving, dtype=np.bool_))


def decided_problem(fleet: Fleet, decision: Decision) -> Problem:
    """Return the problem whose candidates are the assignments of a decision, at value 0.

    Those of devices that nothing supplies are missing. Scores are not read.
    """
    indexed = ResourceIndex(fleet)
    workloads = {item.name: (at, item.kind) for at, item in enumerate(fleet.workloads)}
    clusters = {item.name: at for at, item in enumerate(fleet.clusters)}
    values = np.full((len(fleet.workloads), len(indexed.resources)), np.nan)
    for item in decision.assignments:
        number, kind = workloads.get(item.workload, (-1, ""))
        resource = ClusterResource(clusters.get(item.cluster, -1), kind, item.device)
        if resource in indexed.number:
            values[number, indexed.number[resource]] = 0.0
    return _problem(indexed, values)


def _problem(indexed: ResourceIndex, values: Floats) -> Problem:
    """Return the problem of a fleet with these values [workloads, resources]."""
    fleet = indexed.fleet
    return Problem(
        clusters=tuple(cluster.name for cluster in fleet.clusters),
        resources=indexed.resources,
        policies=indexed.policies,
        workloads=_workloads(indexed),
        values=values,
        base=indexed.base,
        labels=_labels(fleet),
        limits=tuple(_limits(indexed)),
        nodes={at: nodes for at, (nodes, _) in enumerate(indexed.nodes) if nodes is not None},
    )


def staying(fleet: Fleet) -> Mapping[int, float]:
    """Return by priority what the problem's values count for staying, if all workloads stay.

    Values credit an assignment where a workload runs with the cost of leaving it. Less this sum,
    the value of a decision is that of its scores minus the costs of its moves.
    """
    known = {cluster.name for cluster in fleet.clusters}
    total: dict[int, float] = {}
    for item in fleet.workloads:
        saved = item.move_cost * len(known.intersection(item.running))
        total[item.priority] = total.get(item.priority, 0.0) + saved
    return total


def _values(indexed: ResourceIndex) -> Floats:
    fleet = indexed.fleet
    values = np.full((len(fleet.workloads), len(indexed.resources)), np.nan)
    numbered = sorted(enumerate(fleet.workloads), key=lambda item: item[1].app)
    app, own = None, np.empty(0)
    for index, workload in numbered:
        if workload.kind not in indexed.kind:
            continue
        if workload.app != app:
            app, own = workload.app, indexed.value(workload.app)
        allowed = indexed.kind[workload.kind].copy()
        for predicate in PREDICATES.values():
            allowed &= ~predicate.rules_out(indexed, workload, own)
        values[index, allowed] = own[allowed]
        if workload.avoided:
            values[index] -= _avoidance(indexed, workload, values[index])
        for cluster, ready in workload.pending:
            lost = (1 - max(ready, PENDING_SHARE)) * np.clip(values[index], 0.0, None)
            values[index] -= lost * indexed.named((cluster,))
        if workload.move_cost and workload.running:
            values[index] += workload.move_cost * indexed.named(workload.running)
    return values


def _avoidance(indexed: ResourceIndex, workload: Workload, values: Floats) -> Floats:
    """Return what assignments lose on clusters that the workload avoids.

    min(avoidance cost, value), so that a preference never leaves a workload unplaced.
    """
    most = np.clip(values, 0.0, indexed.fleet.avoidance_cost)
    return np.asarray(most * indexed.named(workload.avoided))


def _workloads(indexed: ResourceIndex) -> tuple[ProblemWorkload, ...]:
    fleet = indexed.fleet
    number = {cluster.name: index for index, cluster in enumerate(fleet.clusters)}
    matching = _matching(fleet)
    return tuple(
        ProblemWorkload(
            **{name: getattr(item, name) for name in _SHARED_FIELDS},
            workload_affinity=(
                *(matching[text] for text in (item.workload_affinity,) if text),
                *((name,) for name in item.together_with),
            ),
            workload_anti_affinity=tuple(
                dict.fromkeys((*matching.get(item.workload_anti_affinity, ()), *item.apart_from))
            ),
            current=tuple(number[name] for name in item.current if name in number),
            running=tuple(number[name] for name in item.running if name in number),
            pods=indexed.pods[item.name],
        )
        for item in fleet.workloads
    )


_SHARED_FIELDS = tuple(
    item.name
    for item in fields(ProblemWorkload)
    if item.name
    not in {"workload_affinity", "workload_anti_affinity", "current", "running", "pods"}
)
"""The fields of a ProblemWorkload that are those of the Workload."""


def _matching(fleet: Fleet) -> Mapping[str, tuple[str, ...]]:
    """Return the workloads that each selector of workloads matches; workloads share the tuples."""
    texts = {text for item in fleet.workloads for text in item.workload_selectors}
    parsed = {text: valid_selector(text) for text in sorted(texts)}
    return {
        text: tuple(item.name for item in fleet.workloads if wanted.matches(item.labels))
        for text, wanted in parsed.items()
    }


def _labels(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    keys = sorted({item.key for workload in fleet.workloads for item in workload.spread})
    return {key: tuple(item.label(key) for item in fleet.clusters) for key in keys}


def _limits(indexed: ResourceIndex) -> Iterator[Limit]:
    fleet = indexed.fleet
    clusters = np.array([policy.cluster for policy in indexed.policies], dtype=np.int64)
    costs: dict[str, Floats] = {}
    for limit in fleet.limits:
        used = 1.0 if limit.cluster else 0.0
        workloads = [dict(item.uses).get(limit.uses, used) for item in fleet.workloads]
        policies = [
            dict(candidate.uses).get(limit.uses, 0.0)
            for cluster in fleet.clusters
            for candidate in cluster.candidates
        ]
        if limit.score and limit.score not in costs:
            costs[limit.score] = _costs(indexed, limit.score)
        assignments = _moves(indexed, limit) if limit.moving else costs.get(limit.score)
        for name, within in _scopes(indexed, limit):
            counted = np.where(within[clusters], np.array(policies), 0.0)
            yield Limit(
                name, limit.most, within[indexed.cluster], np.array(workloads), counted, assignments
            )


def _costs(indexed: ResourceIndex, score: str) -> Floats:
    """Return what limits count of a score: [workloads, resources].

    0 where it is missing or less.
    """
    costs = np.zeros((len(indexed.fleet.workloads), len(indexed.resources)))
    for row, workload in enumerate(indexed.fleet.workloads):
        np.fmax(indexed.scores(score, workload.app), 0.0, out=costs[row])
    return costs


def _moves(indexed: ResourceIndex, limit: FleetLimit) -> Floats:
    """Return which assignments are moves that a limit counts, [workloads, resources]."""
    return np.array(
        [
            (item.name in limit.moving) & ~indexed.named(item.current)
            for item in indexed.fleet.workloads
        ],
        dtype=np.float64,
    )


def _scopes(indexed: ResourceIndex, limit: FleetLimit) -> Iterator[tuple[str, Bools]]:
    """Yield each limit's name and the clusters that it counts."""
    clusters = indexed.fleet.clusters
    wanted = valid_selector(limit.selector)
    within = np.array(
        [wanted.matches(item.labels) and limit.cluster in ("", item.name) for item in clusters],
        dtype=np.bool_,
    )
    if not limit.per:
        yield limit.name, within
        return
    values = np.array([cluster.label(limit.per) for cluster in clusters], dtype=object)
    for value in dict.fromkeys(values[within].tolist()):
        yield f"{limit.name} where {limit.per} is {value or 'not set'}", within & (values == value)


def _needed(problem: Problem, usable: Bools) -> set[int]:
    """Return the resources that some workload could take something of."""
    resources = set(np.nonzero(usable.any(axis=0))[0].tolist())
    workloads = np.nonzero(usable.any(axis=1))[0].tolist()
    kinds = {kind for workload in workloads for kind, _ in problem.workloads[workload].requests}
    clusters = {problem.resources[resource].cluster for resource in resources}
    return resources | {
        index
        for index, resource in enumerate(problem.resources)
        if resource.kind in kinds and resource.device == NO_DEVICE and resource.cluster in clusters
    }


_SCORES_PER_PLACE = 8
_PLACES_PER_ENTRY = 4
"""An assignment in a row of a rule beyond capacity takes as much memory as four without any."""


def too_large(fleet: Fleet, most: int) -> RequestProblem | None:
    """Refuse a fleet of more assignments than `most`.

    An assignment of a workload to which limits, spread and the like apply counts more often.
    """
    workloads, resources = len(fleet.workloads), len(ResourceIndex(fleet).resources)
    ruled = (
        _PLACES_PER_ENTRY * resources * sum(_rows(item, fleet.limits) for item in fleet.workloads)
    )
    assignments = workloads * resources
    if assignments + ruled <= most:
        return None
    count = f"{assignments} places"
    if ruled:
        count += (
            f", which count as {assignments + ruled} for limits, spread, replicas, affinity to"
            " workloads and further requests"
        )
    return _refusal(
        f"{workloads} workloads on {resources} devices and kinds of clusters are {count},"
        f" and at most {most} are solved at once"
    )


def _rows(workload: Workload, limits: Iterable[FleetLimit]) -> int:
    """Return in how many rows of rules beyond capacity each assignment of a workload is."""
    uses = dict(workload.uses)
    counted = sum(
        bool(limit.score or limit.cluster or uses.get(limit.uses)) or workload.name in limit.moving
        for limit in limits
    )
    named = (workload.apart_from, workload.together_with)
    ruled = (
        *workload.spread,
        *workload.workload_selectors,
        *workload.requests,
        *filter(None, named),
    )
    return counted + len(ruled) + (workload.replicas > 1)


def too_many_scores(apps: int, devices: int, scores: int, most: int) -> RequestProblem | None:
    """Refuse to read more scores than fit besides `most` assignments: each takes at least 2 bytes.

    GPUs may be offered for many more devices than anybody scores, each of which is an assignment
    then.
    """
    allowed = _SCORES_PER_PLACE * most
    if apps * devices * scores <= allowed:
        return None
    return _refusal(
        f"{scores} scores of {apps} apps on {devices} devices that clusters supply or could supply"
        f" are {apps * devices * scores}, and at most {allowed} are read at once"
    )


def _refusal(why: str) -> RequestProblem:
    return ProblemKind.TOO_MANY_PLACES.because(f"{why}; name fewer clusters or workloads")
