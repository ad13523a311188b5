"""The recorded plans of one optimization: which revision is next, and which records go."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from dsf.api.invalid_input import InvalidInput
from dsf.api.untrusted_text import UntrustedText
from dsf.kube.changes import Change, Delete, Patch
from dsf.kube.kinds import PLACEMENT_PLAN
from optimizer.plan.digest import digest_of_json
from optimizer.plan.generated_objects import changes
from optimizer.plan.plan import Plan
from optimizer.record.content import RecordContent
from optimizer.record.plan_status import settled, superseded
from optimizer.record.recorded_facts import recorded_facts
from optimizer.record.recorded_plan import RecordedPlan, recorded_request
from optimizer.snapshot.observation import Observation

PlanHistory = Sequence[RecordedPlan]
"""Plans of one optimization, the newest first; after them those that somebody else wrote."""

LAST_REVISION = 2**31 - 1
"""No optimizer counts so far: a greater revision is somebody's who wants no plan after it."""


def history_of(records: Iterable[RecordedPlan], optimization: str) -> tuple[RecordedPlan, ...]:
    """Return the plans of an optimization, in the order of the records."""
    return tuple(item for item in records if item.spec.optimization == optimization)


def next_revision(records: Sequence[RecordedPlan], optimization: str) -> int:
    """Return the revision after the newest one, whose name no record has.

    Only what the optimizer wrote counts, as far as that is known.
    """
    history, names = history_of(records, optimization), {item.name for item in records}
    known = (item.spec.revision for item in history if item.problem is None)
    revision = max((number for number in known if number < LAST_REVISION), default=0) + 1
    while f"{optimization}-{revision}" in names:
        revision += 1
    return revision


def is_recorded(plan: Plan, history: PlanHistory, observation: Observation) -> bool:
    """Return whether the newest record says all about a plan that changes nothing.

    It does not if an object of the plan says something else by now: the new record says that.
    """
    if plan.changes or not history or history[0].problem or history[0].phase != "Applied":
        return False
    newest, content = history[0].spec, history[0].content()
    if (newest.request_digest, newest.objects_digest) != (
        digest_of_json(recorded_request(plan)),
        digest_of_json(plan.manifests),
    ):
        return False
    if isinstance(content, InvalidInput) or not content.digests:
        return True
    return content.facts == recorded_facts(observation, plan.request, plan.solution.decision)


def in_force(history: PlanHistory) -> RecordedPlan | None:
    """Return the plan in force: the newest that was not replaced; None if it is not whole.

    A plan whose rollout goes on counts, because its next steps are being written. A record that the
    optimizer did not sign does not.
    """
    for record in history:
        if record.signed is False:
            continue
        if record.phase == "Applied" or record.is_rolling_out:
            return record
        if record.phase in ("Applying", "Failed"):
            return None
    return None


def what_became(record: RecordedPlan, history: PlanHistory) -> str:
    """Return why a recorded plan is not in force, in words."""
    newest = history[0] if history else record
    told = newest if record.phase == "Applied" else record
    said = told.latest.message if told.latest else "its writer ended before it was whole"
    return f"revision {told.spec.revision} is {told.phase}: {UntrustedText(said)}"


def interrupted(
    records: Iterable[RecordedPlan], observation: Observation, now: datetime
) -> Iterator[Patch]:
    """Yield the statuses of plans whose writer died. The caller holds the namespace's Lease."""
    for record in records:
        if record.phase == "Applying" and not record.is_rolling_out:
            content = None if record.problem else record.content()
            missing = (
                tuple(unwritten(content, record.spec.optimization, observation))
                if isinstance(content, RecordContent)
                else None
            )
            yield settled(record, missing, now)


def unwritten(
    content: RecordContent, optimization: str, observation: Observation
) -> Iterator[Change]:
    """Yield the changes that would make the generated objects those of a record.

    A plan without pruning keeps the objects of workloads that it does not name: they are not in its
    record, and no difference from it.
    """
    own = {(obj["kind"], obj["metadata"]["name"]) for obj in content.objects}
    for change in changes(content.objects, observation, optimization):
        if content.request.get("prune", True) or (change.kind.kind, change.name) in own:
            yield change


def replaced(by: RecordedPlan, history: PlanHistory, now: datetime) -> Iterator[Patch]:
    """Yield the statuses of the applied plans that a newly applied one replaced."""
    for record in history:
        if record.phase == "Applied" and record.name != by.name:
            yield superseded(record, by, now)


def forgotten(history: PlanHistory, limit: int) -> tuple[Delete, ...]:
    """Return the deletions of the oldest records, so that at most `limit` are kept.

    Those that the optimizer did not sign are counted apart: they push none of its own out.
    """
    own = [item for item in history if item.signed is not False]
    others = [item for item in history if item.signed is False]
    return tuple(
        Delete(PLACEMENT_PLAN, item.name, item.namespace, item.uid)
        for item in (*own[limit:], *others[limit:])
    )
