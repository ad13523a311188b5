"""Executes rollouts: writes what the next step needs, waits, and says so on the record.

Any number of servers may do so at once. A server writes objects only while it holds the Lease of
the namespace, and a progress only if nobody has written the record since it was read. Between two
writes it keeps nothing: a server that is killed loses nothing, and another one goes on.
"""

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from prometheus_client import CollectorRegistry

from dsf.api.invalid_input import InvalidInput
from dsf.api.names import IN_PROGRESS, OPTIMIZATION_LABEL, REPLICA_SET_LABEL, ROLLOUT_LABEL
from dsf.kube.changes import ChangeResult, Patch
from dsf.kube.errors import Conflict, Forbidden, KubeError, NotFound
from dsf.kube.json_merge_patch import without_nulls
from dsf.kube.kinds import MANIFEST_WORK, PLACEMENT_PLAN
from dsf.kube.port import Kube, Object
from dsf.kube.reads import find_object
from dsf.runtime.backoff import Backoff, Failures
from dsf.runtime.events import EventRecorder
from dsf.runtime.logs import NOT_AUTHENTICATED, audit
from dsf.runtime.reconcile.followed_view import FollowedView
from optimizer.domain.arrays import members_by_key
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.plan_annotations import with_plan
from optimizer.follow.record.recorded_plan import EDITED, NOT_SIGNED
from optimizer.follow.rollout.held_policies import held_policies, uncovered_workloads
from optimizer.follow.rollout.next_step import RolloutMove, RolloutProgress, next_move, waiting
from optimizer.follow.rollout.rollout_commands import (
    after_command,
    no_record_key,
    no_rollout,
    not_ours,
)
from optimizer.follow.rollout.rollout_record import (
    RolloutRecord,
    current_step,
    goes_on,
    is_rollout,
    label_patch,
    optimization_of,
    progress_patch,
    progress_reason,
    revision_of,
    rollout_record,
    status_of,
)
from optimizer.follow.rollout.rollout_state import RolloutState, states_of, workloads_of
from optimizer.follow.rollout.step_nodes import taken_nodes
from optimizer.follow.rollout.step_requirements import RolloutFacts, rollout_facts
from optimizer.follow.rollout.text import rollout_event
from optimizer.service.hub.generated_writes import write_generated
from optimizer.service.metrics import OptimizerMetrics
from optimizer.service.namespace_lease import NamespaceLease, NamespaceWriters
from optimizer.service.observe import list_all, observe, observe_namespace
from optimizer.service.plan_records import PlanRecords
from optimizer.service.record_keys import RecordKeys
from optimizer.snapshot.object_readers import cluster_selectors
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.rollout import RolloutCommand, RolloutStatus, RolloutWait

_log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""Pause between two looks at the rollouts in progress; OCM itself takes seconds for each change."""

MOVES_AT_ONCE = 50
"""Moves of one rollout before another one has its turn."""

RETRIES = Backoff(1.0, 60.0)
"""Pause of a rollout whose last move failed."""

ATTEMPTS = 5
"""How often a command is tried again whose record somebody else wrote at the same time."""

COMPONENT = "dynamic-scoring-optimizer"


class RolloutController:
    """The rollouts of a hub, or of some of its namespaces."""

    def __init__(
        self,
        kube: Kube,
        settings: OptimizerSettings,
        plans: PlanRecords,
        *,
        keys: RecordKeys,
        writers: NamespaceWriters,
        now: Callable[[], datetime],
        metrics: OptimizerMetrics,
    ) -> None:
        self._metrics = metrics
        self._kube = kube
        self._settings = settings
        self._keys = keys
        self._writers = writers
        self._now = now
        self._plans = plans
        self._namespaces = settings.rollout_namespaces
        self._nudged = asyncio.Event()
        self._plans_in = dict[str | None, FollowedView[RolloutRecord]]()
        self._lists_everywhere: bool | None = None
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=CollectorRegistry())

    async def run(self) -> None:
        """Advance all rollouts until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            group.create_task(self._advance_all())

    def nudge(self) -> None:
        """Look at the rollouts now: one has begun, or somebody has changed one."""
        self._nudged.set()

    async def check_rights(self) -> None:
        """Raise Forbidden where the ManifestWorks, for which steps wait, can't be read."""
        await self._kube.list(MANIFEST_WORK, labels=REPLICA_SET_LABEL, limit=1)

    async def of_namespace(self, namespace: str) -> tuple[RolloutRecord, ...]:
        """Return the newest rollout of each optimization of a namespace."""
        every = members_by_key(
            (optimization_of(obj), obj) for obj in await self._records(namespace)
        )
        return tuple([await self._newest(every[name]) for name in sorted(every)])

    async def find(self, namespace: str, optimization: str) -> RolloutRecord | None:
        """Return the newest rollout of an optimization."""
        found = await self._records(namespace, f"{OPTIMIZATION_LABEL}={optimization}")
        return await self._newest(found) if found else None

    async def _newest(self, found: Sequence[Object]) -> RolloutRecord:
        """Return the newest rollout that the optimizer signed; the newest of all without one."""
        newest = await self._read(found[-1])
        record, older = newest, reversed(found[:-1])
        while record.plan in (NOT_SIGNED, EDITED):
            obj = next(older, None)
            if obj is None:
                return newest
            record = await self._read(obj)
        return record

    async def in_progress(self, namespace: str) -> tuple[RolloutRecord, ...]:
        """Return the rollouts of a namespace that have not ended.

        What the optimizer did not sign is none: nothing of it will be written.
        """
        found = await self._records(namespace)
        records = [await self._read(obj) for obj in found if goes_on(obj)]
        return tuple(record for record in records if record.plan not in (NOT_SIGNED, EDITED))

    async def command(
        self, namespace: str, optimization: str, command: RolloutCommand
    ) -> RolloutStatus | RequestProblem:
        """Pause, resume, undo or cancel the newest rollout of an optimization."""
        for _ in range(ATTEMPTS):
            record = await self.find(namespace, optimization)
            if record is None:
                return no_rollout(namespace, optimization)
            if await self._keys.known() is None:
                return no_record_key(self._keys.unreadable)
            if record.plan in (NOT_SIGNED, EDITED):
                return not_ours(record)
            changed = after_command(record.progress, command, self._now())
            if isinstance(changed, RequestProblem):
                return changed
            with suppress(Conflict):
                await self._record_progress(record, changed)
                self.nudge()
                newest = await self.find(namespace, optimization)
                return status_of(newest) if newest else no_rollout(namespace, optimization)
        raise Conflict(f"the rollout of {optimization} changes all the time")

    async def changes(self, record: RolloutRecord) -> AsyncGenerator[RolloutRecord]:
        """Yield a rollout that was just found, and whenever it changes, until it has ended.

        One watch serves all callers. One who is slow misses versions, but never the last one.
        """
        if record.progress.ended:
            yield record
            return
        plans = self.plans(await self._scope(record.namespace))
        versions = plans.follow(record.obj)
        del record  # What is followed is shared.
        async with aclosing(versions):
            async for newest in versions:
                yield newest
                if newest.progress.ended:
                    return

    def plans(self, namespace: str | None) -> FollowedView[RolloutRecord]:
        """Return the plans of a namespace, or of all, as one watch tells them to everybody."""
        return self._plans_in.setdefault(
            namespace, FollowedView(self._kube, PLACEMENT_PLAN, namespace, read=self._rollout)
        )

    def plans_heard(self, namespace: str) -> float:
        """Return when the hub last told of plans; -inf where they are not watched."""
        watched = self._plans_in.get(namespace if self._namespaces else None)
        return watched.heard if watched else -math.inf

    async def _scope(self, namespace: str) -> str | None:
        """Return which plans are watched to follow one of a namespace; None: those of all."""
        if self._namespaces:
            return namespace
        if self._lists_everywhere is None:
            try:
                await self._kube.list(PLACEMENT_PLAN, limit=1)
                self._lists_everywhere = True
            except Forbidden:
                self._lists_everywhere = False
        return None if self._lists_everywhere else namespace

    async def _find(self, namespace: str, name: str) -> RolloutRecord | None:
        """Return the rollout of one PlacementPlan; None if there is none."""
        obj = await find_object(self._kube, PLACEMENT_PLAN, name, namespace)
        return await self._rollout(obj) if obj else None

    async def _read(self, obj: Object) -> RolloutRecord:
        record = await self._rollout(obj)
        if record is None:
            raise TypeError("the record of no rollout")
        return record

    async def _rollout(self, obj: Object) -> RolloutRecord | None:
        """Return the rollout of a PlacementPlan; its steps are unpacked in a thread."""
        return await asyncio.to_thread(rollout_record, obj, await self._keys.known())

    async def advance(self, namespace: str, name: str) -> bool:
        """Make one move of a rollout; return whether it changed anything."""
        look = await self._look(namespace, name)
        if look is None:
            return False
        if not look.move.changes:
            return await self._settle(look)
        done = await self._writers.write_alone(
            namespace, lambda lease: self._write(lease, namespace, name)
        )
        return done is True

    async def _advance_all(self) -> None:
        loop, last = asyncio.get_running_loop(), ""
        failures = defaultdict[tuple[str, str], Failures](lambda: Failures(RETRIES))
        until = dict[tuple[str, str], float]()
        while True:
            self._nudged.clear()
            due, error = await self._due()
            if error not in ("", last):
                _log.warning("rollouts not read", extra={"error": error})
            last = error
            for key in due:
                if loop.time() < until.get(key, 0.0):
                    continue
                if failure := await self._advance_one(*key):
                    until[key] = loop.time() + failures[key].delay(failure, 0.0)
                else:
                    failures[key].reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._nudged.wait()

    async def _advance_one(self, namespace: str, name: str) -> Exception | None:
        """Advance a rollout as far as it goes; return why it failed, which stops no other."""
        said = {"namespace": namespace, "plan": name}
        try:
            for _ in range(MOVES_AT_ONCE):
                if not await self.advance(namespace, name):
                    break
        except KubeError as error:
            _log.warning("rollout not advanced", extra={**said, "error": str(error)})
            if isinstance(error, Forbidden | NotFound):
                message = f"the hub refused a call: {error}; it is tried again"
                wait = RolloutWait(reason="HubRefused", message=message)
                with suppress(KubeError):
                    await self._wait_for(namespace, name, (wait,))
            return error
        except Exception as error:  # noqa: BLE001 - one that fails stops no other
            _log.exception("rollout not advanced", extra=said)
            return error
        return None

    async def _due(self) -> tuple[list[tuple[str, str]], str]:
        """Return namespace and name of the records whose rollout has not ended, and an error."""
        labels = f"{ROLLOUT_LABEL}={IN_PROGRESS}"
        found, error = list[Object](), ""
        for namespace in self._namespaces or (None,):
            try:
                found += await list_all(self._kube, PLACEMENT_PLAN, namespace, labels=labels)
            except KubeError as failure:
                error = str(failure)
        if not error:
            self._metrics.rollouts(map(progress_reason, found))
        names = [(str(i["metadata"]["namespace"]), str(i["metadata"]["name"])) for i in found]
        return names, error

    async def _look(self, namespace: str, name: str) -> "_Look | None":
        """Read a rollout and decide its next move; None if there is nothing to decide."""
        record = await self._find(namespace, name)
        if record is None:
            return None
        if await self._keys.known() is None:
            raise KubeError(f"no rollout is made without the key: {self._keys.unreadable}")
        if isinstance(record.plan, InvalidInput) or record.progress.ended:
            return _Look(record, RolloutMove(record.progress))
        states = states_of(record.plan)
        facts = await self._facts(record.plan, states)
        move = next_move(record.plan, states, record.progress, facts, self._now())
        return _Look(record, move)

    async def _facts(self, plan: RolloutPlan, states: Sequence[RolloutState]) -> RolloutFacts:
        observation = await observe_namespace(self._kube, plan.namespace, self._now())
        if observation.works is None:
            await self.check_rights()
        return await asyncio.to_thread(
            rollout_facts, observation, owner=plan.owner, workloads=workloads_of(states)
        )

    async def _write(self, lease: NamespaceLease, namespace: str, name: str) -> bool:
        """Make one move while nobody else writes, here or in other namespaces."""
        look = await self._look(namespace, name)
        if look is None:
            return False
        if not look.move.changes:
            return await self._settle(look)
        if waits := await self._waits_for_others(look):
            return await self._settle(waits)
        await lease.announce(look.record.digest)
        await self._settle(look)
        spec = look.record.obj["spec"]
        writes = with_plan(
            look.move.changes, spec["digest"], spec["objective"], spec["requestDigest"]
        )
        outcomes = await write_generated(self._kube, writes, reader=self._kube)
        refused = _refused(outcomes)
        _audit(look, refused)
        if not refused:
            return True
        await self._wait_for(namespace, name, refused)
        return False

    async def _wait_for(self, namespace: str, name: str, waits: tuple[RolloutWait, ...]) -> None:
        """Record what a rollout waits for, unless it has ended."""
        record = await self._find(namespace, name)
        if record and not record.progress.ended:
            await self._record_progress(record, replace(record.progress, waiting_for=waits))

    async def _waits_for_others(self, look: "_Look") -> "_Look | None":
        """Return what a move waits for that others enforce, run or use; None if nothing."""
        record, move = look.record, look.move
        if isinstance(record.plan, InvalidInput):
            return None
        observation = await observe(self._kube, record.namespace, self._now())
        select = cluster_selectors(observation.managed_clusters, self._settings.cluster_label_key)
        states = states_of(record.plan)
        source, state = states[move.progress.source], states[move.progress.target]
        packed = record.obj["spec"].get("content")
        found = (
            *held_policies(state, move.changes, observation, record.plan.owner, select),
            *uncovered_workloads(
                record.plan,
                state,
                move.changes,
                observation,
                select,
                workloads=workloads_of(states),
                claim_name=self._settings.claim_name,
            ),
            *await asyncio.to_thread(
                taken_nodes, source, state, packed, observation, self._settings
            ),
        )
        if not found:
            return None
        return _Look(record, waiting(record.plan, record.progress, found, self._now()))

    async def _settle(self, look: "_Look") -> bool:
        """Record the progress of a move, and say what it is; return whether it changed."""
        record, move = look.record, look.move
        changed = await self._record_progress(record, move.progress)
        event = rollout_event(record, move)
        if event:
            self._events.record(PLACEMENT_PLAN, record.obj, *event)
        if move.progress.ended:
            await self._finish(record, move.progress)
        elif record.plan in (NOT_SIGNED, EDITED) and (patch := label_patch(record)):
            await self._patch(patch)
        return changed

    async def _finish(self, record: RolloutRecord, progress: RolloutProgress) -> None:
        await self._plans.end_rollout(record.namespace, record.name, progress.phase)
        patch = label_patch(replace(record, progress=progress))
        if patch:
            await self._patch(patch)
            self._metrics.rollout_ended(progress.phase)

    async def _record_progress(self, record: RolloutRecord, progress: RolloutProgress) -> bool:
        """Write a progress, unless the record says the same; raises Conflict if it has changed."""
        patch = progress_patch(record, progress, self._now())
        before = record.obj.get("status") or {}
        after = without_nulls(patch.body["status"])  # they say that a field is absent
        if all(before.get(field) == value for field, value in after.items()):
            return False
        await self._patch(patch)
        return True

    async def _patch(self, patch: Patch) -> None:
        await self._kube.patch(
            patch.kind, patch.name, patch.body, patch.namespace, subresource=patch.subresource
        )

    async def _records(self, namespace: str, labels: str = "") -> list[Object]:
        """Return the PlacementPlans that are rolled out, the newest last.

        Without the right to list them there are none: no rollout can begin then.
        """
        try:
            found = await list_all(self._kube, PLACEMENT_PLAN, namespace, labels=labels)
        except Forbidden:
            return []
        return sorted((obj for obj in found if is_rollout(obj)), key=revision_of)


def _audit(look: "_Look", refused: Sequence[RolloutWait]) -> None:
    """Write the line of the audit log for the writes of a step: which it is, and who asked."""
    record = look.record
    audit(
        "write",
        user=record.obj["spec"].get("requestedBy") or NOT_AUTHENTICATED,
        action="rollout step",
        namespace=record.namespace,
        plan=record.name,
        digest=record.digest,
        step=current_step(look.move.progress),
        outcome=refused[0].message if refused else "done",
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """A record as it was read, and its next move."""

    record: RolloutRecord
    move: RolloutMove


def _refused(outcomes: Sequence[ChangeResult]) -> tuple[RolloutWait, ...]:
    return tuple(
        RolloutWait(
            reason="HubRefused",
            message=f"the hub refused to {outcome.change}: {outcome.error}; it is tried again",
        )
        for outcome in outcomes
        if outcome.error is not None
    )
