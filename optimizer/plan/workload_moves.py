"""A plan told by workload: where each one runs now, where it will run, and what it gains."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from optimizer.domain.fleet import Cluster, Fleet, Workload
from optimizer.domain.grouping import members_by_key
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.wire.result import (
    EnforcementChange,
    MoveAction,
    Removal,
    Unplaced,
    WorkloadMove,
    WorkloadPlace,
)
from optimizer.wire.rollout import StepActions


def enforcement_changes(
    before: Iterable[PolicyEnforcement], after: Iterable[PolicyEnforcement]
) -> tuple[EnforcementChange, ...]:
    """Return the clusters whose enforced policies change, by name."""
    old = members_by_key((item.cluster, item.policy) for item in sorted(before))
    new = members_by_key((item.cluster, item.policy) for item in sorted(after))
    return tuple(
        EnforcementChange(
            cluster=cluster,
            before=tuple(old.get(cluster, ())),
            after=tuple(new.get(cluster, ())),
        )
        for cluster in sorted(old.keys() | new.keys())
        if old.get(cluster, []) != new.get(cluster, [])
    )


def workload_moves(
    fleet: Fleet,
    decision: Decision,
    *,
    enforced: Iterable[PolicyEnforcement],
    unplaced: Iterable[Unplaced] = (),
    removed: Iterable[Removal] = (),
) -> tuple[WorkloadMove, ...]:
    """Return what becomes of each workload, in the order of the request.

    `enforced`: the policies in force. `removed`: workloads that the request does not name and that
    the plan removes; they come last, without devices and scores.
    """
    now = frozenset(enforced)
    replaced = {item.cluster for item in enforcement_changes(now, decision.policies)}
    running = {item.name: _Supplied(item, now) for item in fleet.clusters}
    after = members_by_key((item.workload, item) for item in decision.assignments)
    why = {item.workload: item.reason for item in unplaced}
    named = {item.name for item in fleet.workloads}
    return (
        *(
            _move(fleet, item, running, after.get(item.name, ()), replaced, why.get(item.name, ""))
            for item in fleet.workloads
        ),
        *(_removed(item) for item in removed if item.workload not in named),
    )


def uncovered_by_steps(
    moves: Iterable[WorkloadMove], steps: Iterable[StepActions]
) -> tuple[WorkloadMove, ...]:
    """Return the moves of a plan whose steps say which workloads are uncovered."""
    names = {name for step in steps for name in step.uncovered}
    return tuple(item.model_copy(update={"uncovered": item.workload in names}) for item in moves)


def score_totals(moves: Iterable[WorkloadMove]) -> dict[str, float]:
    """Return the sum of each raw score over all places of a plan."""
    return _totals(place for move in moves for place in move.after)


class _Supplied:
    """The devices that the policies in force supply on a cluster."""

    def __init__(self, cluster: Cluster, enforced: frozenset[PolicyEnforcement]) -> None:
        self._cluster = cluster
        self._enforced = enforced

    def device(self, kind: str) -> str:
        """Return the device of a kind; empty if the cluster supplies it without any policy."""
        policies = (*self._cluster.candidates, *self._cluster.enforced)
        for item in policies:
            if PolicyEnforcement(self._cluster.name, item.policy) in self._enforced:
                for supply in item.supplies:
                    if supply.kind == kind:
                        return supply.device
        return ""


def _move(
    fleet: Fleet,
    workload: Workload,
    running: Mapping[str, _Supplied],
    assigned: Sequence[Assignment],
    replaced: set[str],
    why: str,
) -> WorkloadMove:
    kind = workload.kind
    before = [
        _place(fleet, workload, cluster, running[cluster].device(kind))
        for cluster in sorted(workload.current)
        if cluster in running
    ]
    after = [_place(fleet, workload, item.cluster, item.device) for item in sorted(assigned)]
    gone = [name for name in workload.current if name not in running]
    was, will = _totals(before), _totals(after)
    return WorkloadMove(
        workload=workload.name,
        action=_action(sorted(workload.current), before, after),
        before=(*before, *(WorkloadPlace(cluster=name, device="", scores={}) for name in gone)),
        after=tuple(after),
        gain={name: will.get(name, 0.0) - was.get(name, 0.0) for name in {**will, **was}},
        uncovered=bool(workload.current) and any(item.cluster in replaced for item in after),
        why=why,
    )


def _action(
    current: Sequence[str], before: Sequence[WorkloadPlace], after: Sequence[WorkloadPlace]
) -> MoveAction:
    if not current:
        return "starts" if after else "waits"
    if not after:
        return "stops"
    was, will = ({(item.cluster, item.device) for item in places} for places in (before, after))
    if will == was and len(current) == len(before):
        return "stays"
    return "shrinks" if will < was else "moves"


def _place(fleet: Fleet, workload: Workload, cluster: str, device: str) -> WorkloadPlace:
    return WorkloadPlace(
        cluster=cluster,
        device=device,
        scores=dict(_scores(fleet, (cluster, workload.app, device))),
    )


def _scores(fleet: Fleet, key: tuple[str, str, str]) -> Iterator[tuple[str, float]]:
    for item in fleet.objectives:
        found = fleet.scores.get(item.score)
        if found is not None and key in found:
            yield item.score, found[key]


def _totals(places: Iterable[WorkloadPlace]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for place in places:
        for name, score in place.scores.items():
            totals[name] = totals.get(name, 0.0) + score
    return totals


def _removed(item: Removal) -> WorkloadMove:
    before = (WorkloadPlace(cluster=name, device="", scores={}) for name in item.clusters)
    return WorkloadMove(
        workload=item.workload, action="stops", before=tuple(before), after=(), gain={}
    )
