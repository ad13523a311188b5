"""A plan told by workload: where each runs now and will run, what it gains, what is removed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.changes import Change, Create
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Cluster, Fleet, Workload
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.plan.generated_objects import selects_nothing
from optimizer.snapshot.object_readers import name_of, placement_of
from optimizer.snapshot.observation import CurrentDecisions, Observation, workloads_by_placement
from optimizer.wire.request import OptimizeRequest
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
            cluster=cluster, before=tuple(old.get(cluster, ())), after=tuple(new.get(cluster, ()))
        )
        for cluster in sorted(old.keys() | new.keys())
        if old.get(cluster, []) != new.get(cluster, [])
    )


def workload_moves(
    fleet: Fleet,
    decision: Decision,
    *,
    before: CurrentDecisions,
    after: CurrentDecisions,
    uncovering: frozenset[str] = frozenset(),
    restarted: Collection[str] = (),
    unplaced: Iterable[Unplaced] = (),
    removed: Iterable[Removal] = (),
) -> tuple[WorkloadMove, ...]:
    """Return what becomes of each workload, in the order of the request.

    `before`, `after`: what the generated objects say now, and once the plan is written; the
    decision adds the devices. `uncovering`: clusters whose claim is not compliant for a while.
    `restarted`: workloads that run although their Placement is gone; OCM may stop one until it has
    decided the new Placement. `removed`: workloads that the request does not name and that the plan
    removes; they come last, without devices and scores.
    """
    running = {item.name: _Supplied(item, before.policies) for item in fleet.clusters}
    assigned = members_by_key((item.workload, item) for item in decision.assignments)
    why = {item.workload: item.reason for item in unplaced}
    named = {item.name for item in fleet.workloads}
    return (
        *(
            _move(
                _Places(fleet, item, running, assigned.get(item.name, ())),
                after.placements.get(item.placement, ()),
                uncovered=item.name in restarted
                or not uncovering.isdisjoint(after.placements.get(item.placement, ())),
                why=why.get(item.name, ""),
            )
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
    """The devices that a cluster supplies now: by the policies in force, and without any."""

    def __init__(self, cluster: Cluster, enforced: frozenset[PolicyEnforcement]) -> None:
        policies = (
            item
            for item in (*cluster.candidates, *cluster.enforced)
            if PolicyEnforcement(cluster.name, item.policy) in enforced
        )
        self._supplies = (*(one for item in policies for one in item.supplies), *cluster.base)

    def devices(self, kind: str) -> tuple[str, ...]:
        """Return the devices of a kind; one empty name if there is none."""
        return tuple(item.device for item in self._supplies if item.kind == kind) or ("",)


class _Places:
    """Where a workload runs, with the device and the raw scores of each place.

    The hub does not record on which of several devices a workload runs: it is taken to be the one
    that the decision assigns, else the one with the highest value.
    """

    def __init__(
        self,
        fleet: Fleet,
        workload: Workload,
        running: Mapping[str, _Supplied],
        assigned: Iterable[Assignment],
    ) -> None:
        self.workload = workload
        self._fleet = fleet
        self._running = running
        self._assigned = {item.cluster: item.device for item in assigned}

    def before(self, cluster: str) -> WorkloadPlace:
        """Return the place that the workload has now; without scores if no cluster is asked."""
        if cluster not in self._running:
            return WorkloadPlace(cluster=cluster, device="", scores={})
        devices = self._running[cluster].devices(self.workload.kind)
        likely = self._assigned.get(cluster, "")
        found = (self._place(cluster, item) for item in devices)
        return self._place(cluster, likely) if likely in devices else max(found, key=self._value)

    def known(self, before: Iterable[WorkloadPlace]) -> bool:
        """Return whether the clusters of these places are asked, so that their scores are known."""
        return all(item.cluster in self._running for item in before)

    def after(self, cluster: str) -> WorkloadPlace:
        """Return the place that the workload will have."""
        if cluster not in self._assigned:
            return self.before(cluster)
        return self._place(cluster, self._assigned[cluster])

    def _value(self, place: WorkloadPlace) -> float:
        values = [
            item.value(place.scores[item.score])
            for item in self._fleet.objectives
            if item.score in place.scores
        ]
        return sum(values) if values else float("-inf")

    def _place(self, cluster: str, device: str) -> WorkloadPlace:
        scores = dict(_scores(self._fleet, (cluster, self.workload.app, device)))
        return WorkloadPlace(cluster=cluster, device=device, scores=scores)


def _move(places: _Places, selected: Iterable[str], *, uncovered: bool, why: str) -> WorkloadMove:
    workload = places.workload
    before = tuple(map(places.before, sorted(workload.current)))
    after = tuple(map(places.after, sorted(selected)))
    was, will = _totals(before), _totals(after)
    return WorkloadMove(
        workload=workload.name,
        action=_action(before, after),
        before=before,
        after=after,
        gain={
            name: will.get(name, 0.0) - was.get(name, 0.0)
            for name in ({**will, **was} if places.known(before) else ())
        },
        uncovered=uncovered and bool(before) and bool(after),
        why=why,
    )


def moved_between(
    workload: str, before: Iterable[Assignment], after: Iterable[Assignment]
) -> WorkloadMove:
    """Return how the places of a workload in two decisions differ, without scores."""
    was, will = (
        tuple(WorkloadPlace(cluster=i.cluster, device=i.device, scores={}) for i in sorted(places))
        for places in (before, after)
    )
    action = _action(was, will)
    return WorkloadMove(workload=workload, action=action, before=was, after=will, gain={})


def _action(before: Sequence[WorkloadPlace], after: Sequence[WorkloadPlace]) -> MoveAction:
    if not before:
        return "starts" if after else "waits"
    if not after:
        return "stops"
    was, will = ({(item.cluster, item.device) for item in places} for places in (before, after))
    if will == was:
        return "stays"
    return "shrinks" if will < was else "moves"


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


def removals(
    changes: Iterable[Change],
    observation: Observation,
    request: OptimizeRequest,
    running: CurrentDecisions,
) -> Iterator[Removal]:
    """Yield each workload whose generated Placement will select nothing, with its clusters.

    One that runs although its Placement is gone is stopped by a new one.
    """
    referring = workloads_by_placement(observation.workloads)
    named = {item.name for item in request.target_workloads}
    for change in changes:
        if not selects_nothing(change):
            continue
        for workload in referring.get(change.name, ()):
            clusters = running.placements.get(change.name, ())
            if isinstance(change, Create) and not clusters:
                continue
            yield Removal(
                workload=workload,
                clusters=clusters,
                message=f"removes {UntrustedName(workload)} from"
                f" {listed(clusters) or 'no cluster'}: {_why(workload in named, request)}",
            )


def removal_issues(removed: Iterable[Removal]) -> Iterator[Issue]:
    """Yield an issue of each removal."""
    for item in removed:
        yield Issue(reason="RemovesWorkload", message=item.message, workload=item.workload)


def staying_issues(moves: Iterable[WorkloadMove], observation: Observation) -> Iterator[Issue]:
    """Yield an issue of each workload that stays because a plan without places writes nothing.

    `moves`: those of such a plan.
    """
    placements = {name_of(obj): placement_of(obj) for obj in observation.workloads}
    there = set(map(name_of, observation.placements))
    for item in moves:
        if item.before:
            where = listed([place.cluster for place in item.before])
            placement = f"Placement {UntrustedName(placements[item.workload])}"
            by = f"as {placement} says, and OCM decides that again whenever its clusters change"
            if placements[item.workload] not in there:
                by = f"although {placement} is gone"
            yield Issue(
                reason="StaysInForce",
                message="the plan has no place for any workload, so nothing is written:"
                f" {item.workload} stays on {where} {by}",
                workload=item.workload,
            )


def _why(named: bool, request: OptimizeRequest) -> str:
    if named:
        return "the plan has no place for it"
    return f"the request of {request.owner} does not name it; `prune: false` would keep it"
