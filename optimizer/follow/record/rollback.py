"""Rollback: which recorded plan is restored, from which request and with which decision."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dsf.api.crd.placement_plan import RecordedRollback
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.kinds import POLICY
from optimizer.domain.fleet import CandidatePolicy, Cluster
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Assignment
from optimizer.follow.record.content import RecordContent
from optimizer.follow.record.plan_history import (
    PlanHistory,
    history_of,
    in_force,
    only_optimization,
    optimizations_of,
)
from optimizer.follow.record.recorded_plan import NOT_SIGNED, RecordedPlan
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.fleet_snapshot import FleetSnapshot
from optimizer.snapshot.object_readers import name_of, read_policy
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import CONFLICT, ProblemKind, RequestProblem


@dataclass(frozen=True, slots=True)
class RestoredPlan:
    """A recorded plan that is to be restored: its request and what it decided."""

    record: RecordedPlan
    request: OptimizeRequest
    content: RecordContent
    of: RecordedRollback

    def on(self, observation: Observation) -> "RestoredPlan":
        """Return it without what its request names, its decision does not use and the hub lacks."""
        decision = self.content.decision
        clusters = {
            *map(name_of, observation.managed_clusters),
            *(item.cluster for item in decision.policies),
            *(item.cluster for item in decision.assignments),
        }
        policies = {
            *map(name_of, observation.policies),
            *(item.policy for item in decision.policies),
        }
        workloads = {
            *map(name_of, observation.workloads),
            *(item.workload for item in decision.assignments),
        }
        update = {
            "clusters": tuple(
                item.model_copy(
                    update={
                        "available_policies": tuple(
                            policy for policy in item.available_policies if policy.name in policies
                        )
                    }
                )
                for item in self.request.clusters
                if item.name in clusters
            ),
            "target_workloads": tuple(
                item for item in self.request.target_workloads if item.name in workloads
            ),
        }
        return replace(self, request=self.request.model_copy(update=update))

    @property
    def lenient_request(self) -> OptimizeRequest:
        """The request with which the hub is read: a place without a score is worth 0.

        Scores decide which plan is best, and a rollback asks for no best plan.
        """
        if isinstance(self.request.missing_score, float):
            return self.request
        return self.request.model_copy(update={"missing_score": 0.0})


def restored_plan(
    records: Sequence[RecordedPlan], asked: RollbackRequest
) -> RestoredPlan | RequestProblem:
    """Return the plan to restore; without a revision or digest, the plan before the current one.

    That is the newest earlier plan that was written and generated other objects. After a reset, it
    is the newest plan that was written. With a workload, it is the plan in force, with that one
    where it was. Refused, with the names, if several optimizations have plans and none was named.
    """
    named = optimizations_of(i for i in records if asked.digest in (None, i.spec.digest))
    optimization = asked.optimization or only_optimization(asked.namespace, named)
    if isinstance(optimization, RequestProblem):
        return optimization
    asked = asked.model_copy(update={"optimization": optimization})
    history = history_of(records, optimization)
    if asked.workload and history:
        return _undone_move(history, asked, asked.workload)
    record = next(_candidates(history, asked), None)
    return _restored(history, record, asked) if record else _unknown(history, asked)


def _undone_move(
    history: PlanHistory, asked: RollbackRequest, workload: str
) -> RestoredPlan | RequestProblem:
    """Return the plan in force with a workload where the named plan had it.

    Without a revision or digest, that is the newest plan that had it elsewhere.
    """
    current, name = in_force(history), UntrustedName(workload)
    if current is None:
        return _no_earlier(history, "no plan is in force")
    now = _restored(history, current, asked)
    if isinstance(now, RequestProblem):
        return now
    written = (_restored(history, record, asked) for record in history if record.was_written)
    earlier = [
        plan
        for plan in written
        if isinstance(plan, RestoredPlan)
        and workload in {item.name for item in plan.request.target_workloads}
    ]
    # A plan that prunes has removed what it does not name; another one has left it where it was.
    last = [now] if now.request.prune else earlier[:1]
    here = [place for plan in last for place in _places_of(workload, plan)]
    if asked.to_revision is None and asked.digest is None:
        why = f"no plan that is kept had workload {name} elsewhere than"
    else:
        named = restored_plan(history, asked.model_copy(update={"workload": None}))
        if isinstance(named, RequestProblem):
            return named
        earlier = [named]
        why = f"revision {named.record.spec.revision} had workload {name} nowhere, or where"
    for then in earlier:
        there = _places_of(workload, then)
        if there and there != here:
            return _with_workload(now, then, workload)
    return _no_earlier(
        history, f"{why} the plan in force, revision {current.spec.revision}, has it"
    )


def _places_of(workload: str, plan: RestoredPlan) -> list[Assignment]:
    return sorted(item for item in plan.content.assignments if item.workload == workload)


def _with_workload(now: RestoredPlan, then: RestoredPlan, workload: str) -> RestoredPlan:
    """Return a plan with one workload, and what was asked for it, as an earlier plan had it.

    A cluster on which the plan has nothing else has its policies of then, too.
    """
    there = _places_of(workload, then)
    rest = [item for item in now.content.assignments if item.workload != workload]
    free = {item.cluster for item in there} - {item.cluster for item in rest}
    policies = [item for item in then.content.policies if item.cluster in free]
    names = {item.policy for item in policies}
    known = {obj["metadata"]["name"] for obj in now.content.objects}
    generated = [obj for obj in then.content.objects if obj["metadata"]["name"] in names - known]
    about = {f"workload {UntrustedName(workload)}", *(f"policy {UntrustedName(i)}" for i in names)}
    said = {key: text for key, text in then.content.assumptions.items() if key in about}
    content = {
        "assignments": (*rest, *there),
        "policies": (*(i for i in now.content.policies if i.cluster not in free), *policies),
        "objects": (*now.content.objects, *generated),
        "assumptions": {**now.content.assumptions, **said},
        "unplaced": (
            *(item for item in now.content.unplaced if item.workload != workload),
            *(item for item in then.content.unplaced if item.workload == workload),
        ),
    }
    clusters = {item.name: item for item in now.request.clusters}
    for item in then.request.clusters:
        if item.name in free:
            own = clusters.get(item.name, item)
            have = {policy.name for policy in own.available_policies}
            lack = (i for i in item.available_policies if i.name in names - have)
            update = {"available_policies": (*own.available_policies, *lack)}
            clusters[item.name] = own.model_copy(update=update)
    asked = [item for item in then.request.target_workloads if item.name == workload]
    others = (item for item in now.request.target_workloads if item.name != workload)
    request = {"clusters": (*clusters.values(),), "target_workloads": (*others, *asked)}
    return replace(
        now,
        content=now.content.model_copy(update=content),
        request=now.request.model_copy(update=request),
        of=then.of.model_copy(update={"workload": workload}),
    )


def _restored(
    history: PlanHistory, record: RecordedPlan, asked: RollbackRequest
) -> RestoredPlan | RequestProblem:
    if why := record.problem or (None if record.signed else NOT_SIGNED):
        return _unusable(record, why.message)
    content = record.content()
    if isinstance(content, InvalidInput):
        return _unusable(record, content.message)
    request = _request(content, asked)
    if isinstance(request, InvalidInput):
        return _unusable(record, request.message)
    rollback = RecordedRollback(
        from_revision=history[0].spec.revision, to_revision=record.spec.revision
    )
    return RestoredPlan(record, request, content, rollback)


def no_records(why: Issue) -> RequestProblem:
    """Return the refusal of a hub that keeps no plans."""
    return RequestProblem(
        status=CONFLICT, reason=why.reason, title="The hub keeps no plans", detail=why.message
    )


def no_longer_in_force(record: RecordedPlan, why: str) -> RequestProblem:
    """Return the refusal to apply once more a plan that something has replaced since."""
    return ProblemKind.NOT_IN_FORCE.because(
        f"plan {record.spec.digest[:12]} was applied before, as PlacementPlan {record.name}"
        f" of namespace {record.namespace}, and is not in force: {why}; nothing was written;"
        " plan again, or roll back to its revision"
    )


def with_recorded_policies(snapshot: FleetSnapshot, content: RecordContent) -> FleetSnapshot:
    """Return the fleet with the generated policies of a record, as if they were in force.

    Candidates are then generated with their layouts too, if today's GPUs can have these.
    """
    recorded = [obj for obj in content.objects if obj["kind"] == POLICY.kind]
    by_cluster: dict[str, list[CandidatePolicy]] = {}
    for obj in recorded:
        cluster = str((obj["metadata"].get("annotations") or {}).get(f"{PREFIX}cluster"))
        found = read_policy(obj, cluster)
        if isinstance(found, CandidatePolicy):
            by_cluster.setdefault(cluster, []).append(found)
    clusters = tuple(
        _with_enforced(item, by_cluster.get(item.name, ())) for item in snapshot.fleet.clusters
    )
    return replace(snapshot, fleet=replace(snapshot.fleet, clusters=clusters))


def _with_enforced(cluster: Cluster, policies: Iterable[CandidatePolicy]) -> Cluster:
    known = {item.policy for item in (*cluster.candidates, *cluster.enforced)}
    new = tuple(item for item in policies if item.policy not in known)
    return replace(cluster, enforced=(*cluster.enforced, *new)) if new else cluster


def _candidates(history: PlanHistory, asked: RollbackRequest) -> Iterator[RecordedPlan]:
    """Yield the plans that a request may mean: the optimizer's own, the best first, then others.

    One of the others is refused, with the reason.
    """
    yield from _meant([item for item in history if item.problem is None], asked)
    yield from _meant(history, asked)


def _meant(history: PlanHistory, asked: RollbackRequest) -> Iterator[RecordedPlan]:
    if asked.to_revision is not None:
        yield from (item for item in history if item.spec.revision == asked.to_revision)
    elif asked.digest is not None:
        yield from (item for item in history if item.spec.digest == asked.digest)
    elif history:
        newest, written = history[0], (item for item in history if item.was_written)
        if newest.phase == "Superseded":
            yield from written
        yield from (
            item for item in written if item.spec.objects_digest != newest.spec.objects_digest
        )


def _request(content: RecordContent, asked: RollbackRequest) -> OptimizeRequest | InvalidInput:
    """Return the recorded request; it must be of the namespace and optimization asked for."""
    request = content.asked()
    if isinstance(request, InvalidInput):
        return request
    if request.owner != (asked.namespace, asked.optimization):
        return InvalidInput("UnreadableRecord", f"its request is of {request.owner}")
    return request.model_copy(update={"rollout": asked.rollout}) if asked.rollout else request


def _unknown(history: PlanHistory, asked: RollbackRequest) -> RequestProblem:
    kept = _kept(history)
    whose = f"optimization {UntrustedName(asked.optimization)} in namespace {asked.namespace}"
    if asked.to_revision is None and asked.digest is None and history:
        return _no_earlier(history, f"{whose} has no earlier plan that was written")
    named = f"revision {asked.to_revision}" if asked.to_revision is not None else "this digest"
    return ProblemKind.UNKNOWN_PLAN.because(
        f"{whose} has no plan of {named}; kept are revisions {kept}"
        if history
        else f"no plan of {whose} is recorded"
    )


def _no_earlier(history: PlanHistory, why: str) -> RequestProblem:
    return ProblemKind.NO_EARLIER_PLAN.because(f"{why}; kept are revisions {_kept(history)}")


def _kept(history: PlanHistory) -> str:
    return ", ".join(
        f"{item.spec.revision}{' (not as it was written)' if item.problem else ''}"
        for item in history
    )


def _unusable(record: RecordedPlan, why: str) -> RequestProblem:
    return ProblemKind.UNUSABLE_RECORD.because(
        f"PlacementPlan {record.name}: {why}; name another revision, or plan again"
    )
