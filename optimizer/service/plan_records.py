"""Keeps the record of applied plans on the hub: one PlacementPlan for each of them.

A record is created before the first write of its plan, and its status is completed after the last.
The caller holds the Lease of the namespace meanwhile, so a record that is found Applying belongs to
a writer that died. On a hub that does not serve PlacementPlan, plans are applied without a record.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Any

from dsf.api.crd.placement_plan import RolloutPhase
from dsf.kube.access_reviews import missing_right
from dsf.kube.apply import apply
from dsf.kube.changes import Change, Patch
from dsf.kube.errors import AlreadyExists, Forbidden, Gone, KubeError, NotFound
from dsf.kube.kinds import PLACEMENT_PLAN
from dsf.kube.port import Kube, Lister, Object, list_objects
from optimizer.domain.issue import Issue
from optimizer.follow.record import plan_history, plan_status
from optimizer.follow.record.recorded_plan import RecordedPlan, read_records, record_of
from optimizer.plan.plan import Plan
from optimizer.service.observe import retry_when_gone
from optimizer.service.record_keys import RecordKeys
from optimizer.snapshot.observation import Observation
from optimizer.wire.result import FailedChange

_log = logging.getLogger(__name__)

_RECORDS_AT_ONCE = 20
"""Records of one page; a record has up to 1.5 MB."""


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """The record of a plan that is being applied; `issue` says why there is none, or what it lacks.

    `older`: the earlier plans of its optimization, the newest first. `complete`: it was completed
    before, because the plan changes nothing.
    """

    record: RecordedPlan | None = None
    older: tuple[RecordedPlan, ...] = ()
    issue: Issue | None = None
    complete: bool = False

    @property
    def name(self) -> str:
        """The name of the PlacementPlan; empty if there is none."""
        return self.record.name if self.record else ""


async def recorded_plans(
    kube: Lister, namespace: str | None, keys: RecordKeys
) -> tuple[RecordedPlan, ...] | Issue:
    """Return the recorded plans of a namespace, or of all, or why the hub has none.

    They say whether the optimizer signed them, if `keys` can be read.

    Raises KubeError where the hub can't be read.
    """
    try:
        found = await retry_when_gone(lambda: list_objects(kube, PLACEMENT_PLAN, namespace))
    except (NotFound, Forbidden) as error:
        return _not_recorded(error)
    key = await keys.known() if found else None
    return await asyncio.to_thread(read_records, found, key)


class PlanRecords:
    """The PlacementPlans of a hub; `limit` of them are kept for each optimization."""

    def __init__(
        self, kube: Kube, keys: RecordKeys, *, now: Callable[[], datetime], limit: int
    ) -> None:
        self._kube = kube
        self._keys = keys
        self._now = now
        self._limit = limit

    async def read(self, namespace: str) -> tuple[RecordedPlan, ...] | Issue:
        """Return the recorded plans of a namespace, or why the hub has none.

        Raises KubeError where the hub can't be read.
        """
        return await recorded_plans(self._kube, namespace, self._keys)

    async def find(self, digest: str, namespaces: Collection[str] = ()) -> list[RecordedPlan]:
        """Return the recorded plans whose digest begins so, of these namespaces or of all.

        They are read page by page, because records are large. None if the hub has no records, or
        does not let them be listed.
        """
        found, key = list[RecordedPlan](), await self._keys.known()
        for namespace in namespaces or (None,):
            token = ""
            while True:
                try:
                    page = await self._kube.list(
                        PLACEMENT_PLAN, namespace, limit=_RECORDS_AT_ONCE, continue_token=token
                    )
                except (NotFound, Forbidden, Gone):
                    break
                named = [
                    obj
                    for obj in page.items
                    if str((obj.get("spec") or {}).get("digest")).startswith(digest)
                ]
                found += await asyncio.to_thread(read_records, named, key)
                token = page.continue_token
                if not token:
                    break
        return found

    async def open(self, plan: Plan, requested_by: str, observation: Observation) -> OpenRecord:
        """Record a plan before its first write; statuses of plans whose writer died are settled.

        A plan without placements is not recorded, because it changes nothing. Raises KubeError
        where the record can't be written: then nothing is to be applied.
        """
        records = await self.read(plan.request.namespace)
        if isinstance(records, Issue):
            return OpenRecord(issue=records)
        found = plan_history.interrupted(records, observation, self._now())
        if settled := await asyncio.to_thread(list[Patch], found):  # it reads their contents
            await self._write(settled)
            again = await self.read(plan.request.namespace)
            records = () if isinstance(again, Issue) else again
        history = plan_history.history_of(records, plan.optimization)
        if not plan.manifests:
            return OpenRecord()
        if await asyncio.to_thread(plan_history.is_recorded, plan, history, observation):
            if history[0].solver_failure and plan.solution.failure is None:
                await self._write([plan_status.solved_again(history[0], self._now())])
            return OpenRecord(history[0], history[1:], complete=True)
        key = await self._keys.made()
        issue = None if key else _not_signed(self._keys.unreadable)
        if issue and plan.rollout:
            return OpenRecord(issue=issue)
        revision = plan_history.next_revision(records, plan.optimization)
        obj = await asyncio.to_thread(record_of, plan, revision, observation, requested_by)
        try:
            created = await self._create(obj)
        except Forbidden as error:
            return OpenRecord(issue=_not_recorded(error))
        (record,) = read_records([created])
        begun = plan_status.applying(record, plan.solution, self._now())
        if key:
            steps = len(plan.rollout.steps) if plan.rollout else 0
            begun = plan_status.signed(begun, record, key, steps)
        await self._write([begun])
        (record,) = read_records([{**created, **begun.body}], key)
        return OpenRecord(record, history, issue)

    async def _create(self, record: dict[str, Any]) -> Object:
        """Create a record; under another name if an object has its own that is not a record."""
        try:
            return await self._kube.create(PLACEMENT_PLAN, record)
        except AlreadyExists:
            metadata = record["metadata"]
            name = f"{metadata['name']}-{token_hex(4)}"
            return await self._kube.create(
                PLACEMENT_PLAN, {**record, "metadata": {**metadata, "name": name}}
            )

    async def close(self, opened: OpenRecord, failed: Sequence[FailedChange]) -> tuple[Issue, ...]:
        """Complete a record after the last write of its plan; return what could not be recorded.

        The plans that it replaced get their status, and the oldest records are deleted.
        """
        record = opened.record
        if record is None:
            return (opened.issue,) if opened.issue else ()
        try:
            await self._write(self._completion(opened, record, failed))
        except KubeError as error:
            return (_incomplete(record, error),)
        too_large = (_too_large(record),) if record.spec.content is None else ()
        return (*too_large, opened.issue) if opened.issue else too_large

    async def end_rollout(self, namespace: str, name: str, phase: RolloutPhase) -> None:
        """Say on the record of a rollout that has ended what became of its plan."""
        records = await self.read(namespace)
        if isinstance(records, Issue):
            return
        for record in records:
            if record.name == name and record.phase == "Applying":
                history = plan_history.history_of(records, record.spec.optimization)
                older = tuple(i for i in history if i.spec.revision < record.spec.revision)
                match phase:
                    case "Complete":
                        await self._write(self._completion(OpenRecord(record, older), record, ()))
                    case "TurnedBack":
                        await self._write([plan_status.turned_back(record, self._now())])
                    case "Cancelled":
                        await self._write([plan_status.cancelled(record, self._now())])

    async def forget_current(self, namespace: str, optimization: str | None) -> None:
        """Mark the applied plan of an optimization, or of all, after its objects were deleted.

        If that fails, the reset was made nevertheless, and drift names the deleted objects.
        """
        try:
            records = await self.read(namespace)
            if not isinstance(records, Issue):
                await self._write(
                    plan_status.reset(item, self._now())
                    for item in records
                    if item.phase in ("Applied", "Applying")
                    and optimization in (None, item.spec.optimization)
                )
        except KubeError as error:
            _log.warning("a reset was not recorded", extra={"error": str(error)})

    def _completion(
        self, opened: OpenRecord, record: RecordedPlan, failed: Sequence[FailedChange]
    ) -> Iterator[Change]:
        now = self._now()
        if failed:
            yield plan_status.refused(record, failed, now)
            return
        if not opened.complete:
            yield plan_status.applied(record, now)
        yield from plan_history.replaced(record, opened.older, now)
        yield from plan_history.forgotten((record, *opened.older), self._limit)

    async def _write(self, changes: Iterable[Change]) -> None:
        """Apply changes of records; raises the first error."""
        for outcome in await apply(self._kube, changes):
            if outcome.error and not isinstance(outcome.error, NotFound):
                raise outcome.error


def _not_recorded(error: NotFound | Forbidden) -> Issue:
    """Return the issue of a hub without PlacementPlan, or without the rights of this chart.

    Raises a Forbidden that no right prevents, such as that of a quota.
    """
    if isinstance(error, Forbidden) and missing_right(error) is None:
        raise error
    _log.warning("plans are not recorded", extra={"error": str(error)})
    return Issue(
        reason="PlanNotRecorded",
        message="the plan is not recorded, because the hub serves no PlacementPlan, or does not let"
        " the optimizer list and create them: upgrade the optimizer's chart, or apply"
        " `dsf crds placementplans`",
    )


def _not_signed(why: str) -> Issue:
    return Issue(
        reason="RecordNotSigned",
        message=f"the plan is recorded without a signature, so it can't be restored by a rollback,"
        f" or rolled out step by step: {why}; upgrade the optimizer's chart, or ask the optimizer's"
        " service, which has the key",
    )


def _incomplete(record: RecordedPlan, error: KubeError) -> Issue:
    _log.warning("a record was not completed", extra={"plan": record.name, "error": str(error)})
    return Issue(
        reason="RecordIncomplete",
        message=f"the plan was applied, but the status of PlacementPlan {record.name} could not be"
        " written; the next plan or reset completes it",
    )


def _too_large(record: RecordedPlan) -> Issue:
    return Issue(
        reason="PlanTooLargeToKeep",
        message=f"PlacementPlan {record.name} has no content, because it would be too large for"
        " the hub; it can't be restored by a rollback",
    )
