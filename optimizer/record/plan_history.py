"""The recorded plans of one optimization: which revision is next, and which records go."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from dsf.kube.changes import Delete, Patch
from dsf.kube.kinds import PLACEMENT_PLAN
from optimizer.plan.digest import digest_of_json
from optimizer.plan.generated_objects import changes
from optimizer.plan.plan import Plan
from optimizer.record.content import RecordContent
from optimizer.record.plan_status import settled, superseded
from optimizer.record.recorded_plan import RecordedPlan, recorded_request
from optimizer.snapshot.observation import Observation

PlanHistory = Sequence[RecordedPlan]
"""Plans of one optimization, the newest first."""


def history_of(records: Iterable[RecordedPlan], optimization: str) -> tuple[RecordedPlan, ...]:
    """Return the plans of an optimization, the newest first."""
    return tuple(item for item in records if item.spec.optimization == optimization)


def next_revision(records: Sequence[RecordedPlan], optimization: str) -> int:
    """Return the revision after the newest one, whose name no object has."""
    history, names = history_of(records, optimization), {item.name for item in records}
    revision = max((item.spec.revision for item in history), default=0) + 1
    while f"{optimization}-{revision}" in names:
        revision += 1
    return revision


def is_recorded(plan: Plan, history: PlanHistory) -> bool:
    """Return whether the newest record says all about a plan that changes nothing."""
    if plan.changes or not history or history[0].phase != "Applied":
        return False
    newest = history[0].spec
    return (newest.request_digest, newest.objects_digest) == (
        digest_of_json(recorded_request(plan)),
        digest_of_json(plan.manifests),
    )


def interrupted(
    records: Iterable[RecordedPlan], observation: Observation, now: datetime
) -> Iterator[Patch]:
    """Yield the statuses of plans whose writer died. The caller holds the namespace's Lease."""
    for record in records:
        if record.phase == "Applying" and not record.is_rolling_out:
            content = record.content() if record.intact else None
            missing = (
                changes(content.objects, observation, record.spec.optimization)
                if isinstance(content, RecordContent)
                else None
            )
            yield settled(record, missing, now)


def replaced(by: RecordedPlan, history: PlanHistory, now: datetime) -> Iterator[Patch]:
    """Yield the statuses of the applied plans that a newly applied one replaced."""
    for record in history:
        if record.phase == "Applied" and record.name != by.name:
            yield superseded(record, by, now)


def forgotten(history: PlanHistory, limit: int) -> tuple[Delete, ...]:
    """Return the deletions of the oldest records, so that at most `limit` are kept."""
    return tuple(
        Delete(PLACEMENT_PLAN, item.name, item.namespace, item.uid) for item in history[limit:]
    )
