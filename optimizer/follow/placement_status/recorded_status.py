"""The status of a namespace, compared with the records of the plans in force."""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime

from dsf.api.untrusted_text import InvalidInput
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET, PLACEMENT
from optimizer.domain.issue import Issue
from optimizer.domain.settings import DEFAULTS
from optimizer.follow.placement_status.comparison import placement_status
from optimizer.follow.placement_status.record_drift import record_drift
from optimizer.follow.record.plan_history import PlanHistory, history_of, in_force, rolling_out
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import (
    NotCompared,
    PlacementStatus,
    SolverFailure,
    UnplacedByPlan,
)
from optimizer.wire.result import Unplaced
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS

_REPLICA_SET = MANIFEST_WORK_REPLICA_SET.kind


def recorded_status(
    observation: Observation,
    namespace: str,
    records: Sequence[RecordedPlan] | Issue,
    optimization: str | None = None,
    *,
    cluster_label_key: str = DEFAULTS.cluster_label_key,
) -> PlacementStatus:
    """Return the status of a namespace, or of an optimization, compared with its records too.

    It names the plans in force whose solver failed. An object that differs in itself is not named
    twice. A Placement that is as it was recorded was not edited, whatever the labels of clusters
    make of it now, or whoever deleted its binding.
    """
    unread = tuple[NotCompared, ...]()
    if isinstance(records, Issue):
        unread = (NotCompared(reason=records.reason, message=records.message),)
        records = ()
    rolling_out = {item.spec.optimization for item in records if item.is_rolling_out}
    status = placement_status(observation, namespace, optimization, rolling_out=rolling_out)
    in_force = _plans_in_force(records, optimization)
    found = [record_drift(record, observation, cluster_label_key) for record in in_force]
    misplaced = [item for each in found for item in each.misplaced]
    elsewhere = {item.workload for item in misplaced}
    rows = [item for item in status.workloads if item.workload not in elsewhere]
    rows = sorted((*rows, *misplaced), key=lambda item: (item.workload, item.cluster))
    placed = {item.workload for item in rows}
    coming = [(item, _coming(item, placed)) for item in records if item.is_rolling_out]
    final = zip(in_force, found, strict=True)
    left_out = (*coming, *((record, _unplaced(record, each.unplaced)) for record, each in final))
    explained = {(PLACEMENT.kind, name) for each in found for name in each.explained}
    kept = [item for item in status.drift if (item.kind, item.name) not in explained]
    known = {(item.kind, item.name) for item in kept if item.kind != _REPLICA_SET}
    more = [item for each in found for item in each.drift if (item.kind, item.name) not in known]
    return status.model_copy(
        update={
            "landed": status.landed and not misplaced,
            "workloads": tuple(rows) if misplaced else status.workloads,
            "drift": (*kept, *more),
            "solver_failures": tuple(_solver_failures(in_force)),
            "unplaced": tuple(
                item
                for record, unplaced in left_out
                for item in _since_first(
                    unplaced, record, history_of(records, record.spec.optimization)
                )
            ),
            "not_compared": (*unread, *(each.not_compared for each in found if each.not_compared)),
        }
    )


def _plans_in_force(
    records: Sequence[RecordedPlan], optimization: str | None
) -> list[RecordedPlan]:
    """Return the plan in force of an optimization, or of each; none while a rollout replaces it.

    One that the optimizer did not sign counts only where there is no other.
    """
    found = list[RecordedPlan]()
    for name in dict.fromkeys(item.spec.optimization for item in records):
        history = history_of(records, name)
        applied = (item for item in history if item.phase == "Applied")
        current = in_force(history) or next(applied, None)
        if current and optimization in (None, name) and rolling_out(history) is None:
            found.append(current)
    return found


def _solver_failures(in_force: Iterable[RecordedPlan]) -> Iterator[SolverFailure]:
    for record in in_force:
        if failed := record.solver_failure:
            yield SolverFailure(
                optimization=record.spec.optimization,
                revision=record.spec.revision,
                cause=failed.reason,
                message=failed.message,
            )


def _coming(record: RecordedPlan, placed: Container[str]) -> tuple[UnplacedByPlan, ...]:
    """Return what a plan that is rolled out leaves out, and what it places in a later step."""
    content = record.verified_content()
    if isinstance(content, InvalidInput):
        return ()
    said = f"revision {record.spec.revision} places it in a step that its rollout has yet to make"
    later = (
        Unplaced(workload=name, reason=ROLLOUT_IN_PROGRESS, message=said)
        for name in dict.fromkeys(item.workload for item in content.assignments)
        if name not in placed
    )
    return _unplaced(record, (*content.unplaced, *later))


def _unplaced(record: RecordedPlan, found: Iterable[Unplaced]) -> tuple[UnplacedByPlan, ...]:
    made = {"plan": record.name, "since": record.created}
    return tuple(UnplacedByPlan(**dict(item), **made) for item in found)


def _since_first(
    unplaced: Iterable[UnplacedByPlan], record: RecordedPlan, history: PlanHistory
) -> Iterator[UnplacedByPlan]:
    """Yield workloads since the first of the consecutive plans in force that left them out.

    `earlier`: no record says whether a plan before that one left them out too.
    """
    left = {item.workload: item for item in unplaced if item.reason != ROLLOUT_IN_PROGRESS}
    since, going_on, oldest = dict[str, datetime | None](), set(left), record.spec.revision
    for plan in history:
        if not going_on or plan.spec.revision >= oldest or not plan.was_written:
            continue
        content = plan.verified_content()
        if isinstance(content, InvalidInput):
            break
        told = {item.workload for item in content.unplaced}
        since |= dict.fromkeys(going_on & told, plan.created)
        going_on &= told
        oldest = plan.spec.revision
    for item in unplaced:
        earlier = item.workload in going_on and oldest > 1
        first = since.get(item.workload, item.since)
        yield item.model_copy(update={"since": first, "earlier": earlier})
