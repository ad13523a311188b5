"""Makes the next move of a rollout: writes what its step needs, or records what it waits for.

Any number of servers may do so at once. A server writes objects only while it holds the Lease of
the namespace, and a progress only if nobody has written the record since it was read. Between two
writes it keeps nothing: a server that is killed loses nothing, and another one goes on.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dsf.api.names import REPLICA_SET_LABEL
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.changes import ChangeResult
from dsf.kube.errors import KubeError
from dsf.kube.kinds import MANIFEST_WORK, PLACEMENT_PLAN
from dsf.kube.port import Kube
from dsf.runtime.events import EventRecorder
from dsf.runtime.logs import NOT_AUTHENTICATED, audit
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.plan_annotations import with_plan
from optimizer.follow.record.recorded_plan import EDITED, NOT_SIGNED
from optimizer.follow.rollout.held_policies import held_policies, uncovered_workloads
from optimizer.follow.rollout.next_step import RolloutMove, RolloutProgress, next_move, waiting
from optimizer.follow.rollout.rollout_record import RolloutRecord, current_step, label_patch
from optimizer.follow.rollout.rollout_state import RolloutState, states_of, workloads_of
from optimizer.follow.rollout.step_requirements import RolloutFacts, rollout_facts, taken_nodes
from optimizer.follow.rollout.text import rollout_event
from optimizer.service.hub.generated_writes import write_generated
from optimizer.service.metrics import OptimizerMetrics
from optimizer.service.namespace_lease import NamespaceLease, NamespaceWriters
from optimizer.service.observe import observe, observe_namespace
from optimizer.service.plan_records import PlanRecords
from optimizer.service.record_keys import RecordKeys
from optimizer.service.rollouts.rollout_records import RolloutRecords
from optimizer.snapshot.object_readers import cluster_selectors
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.rollout import RolloutWait


@dataclass(frozen=True, slots=True)
class _Look:
    """A record as it was read, and its next move."""

    record: RolloutRecord
    move: RolloutMove


@dataclass(frozen=True, slots=True, eq=False)
class RolloutMoves:
    """The moves of rollouts. Objects are written with the Lease that `writers` take."""

    kube: Kube
    settings: OptimizerSettings
    records: RolloutRecords
    plans: PlanRecords
    keys: RecordKeys
    writers: NamespaceWriters
    now: Callable[[], datetime]
    metrics: OptimizerMetrics
    events: EventRecorder

    async def check_rights(self) -> None:
        """Raise Forbidden where the ManifestWorks, for which steps wait, can't be read."""
        await self.kube.list(MANIFEST_WORK, labels=REPLICA_SET_LABEL, limit=1)

    async def advance(self, namespace: str, name: str) -> bool:
        """Make one move of a rollout; return whether it changed anything."""
        look = await self._look(namespace, name)
        if look is None:
            return False
        if not look.move.changes:
            return await self._settle(look)
        done = await self.writers.write_alone(
            namespace, lambda lease: self._write(lease, namespace, name)
        )
        return done is True

    async def _look(self, namespace: str, name: str) -> _Look | None:
        """Read a rollout and decide its next move; None if there is nothing to decide."""
        record = await self.records.read(namespace, name)
        if record is None:
            return None
        if await self.keys.known() is None:
            raise KubeError(f"no rollout is made without the key: {self.keys.unreadable}")
        if isinstance(record.plan, InvalidInput) or record.progress.ended:
            return _Look(record, RolloutMove(record.progress))
        states = states_of(record.plan)
        facts = await self._facts(record.plan, states)
        move = next_move(record.plan, states, record.progress, facts, self.now())
        return _Look(record, move)

    async def _facts(self, plan: RolloutPlan, states: Sequence[RolloutState]) -> RolloutFacts:
        observation = await observe_namespace(self.kube, plan.namespace, self.now())
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
        outcomes = await write_generated(self.kube, writes, reader=self.kube)
        refused = _refused(outcomes)
        _audit(look, refused)
        if not refused:
            return True
        await self.wait_for(namespace, name, refused)
        return False

    async def wait_for(self, namespace: str, name: str, waits: tuple[RolloutWait, ...]) -> None:
        """Record what a rollout waits for, unless it has ended."""
        record = await self.records.read(namespace, name)
        if record and not record.progress.ended:
            await self.records.put_progress(record, replace(record.progress, waiting_for=waits))

    async def _waits_for_others(self, look: _Look) -> _Look | None:
        """Return what a move waits for that others enforce, run or use; None if nothing."""
        record, move = look.record, look.move
        if isinstance(record.plan, InvalidInput):
            return None
        observation = await observe(self.kube, record.namespace, self.now())
        select = cluster_selectors(observation.managed_clusters, self.settings.cluster_label_key)
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
                claim_name=self.settings.claim_name,
            ),
            *await asyncio.to_thread(
                taken_nodes, source, state, packed, observation, self.settings
            ),
        )
        if not found:
            return None
        return _Look(record, waiting(record.plan, record.progress, found, self.now()))

    async def _settle(self, look: _Look) -> bool:
        """Record the progress of a move, and say what it is; return whether it changed."""
        record, move = look.record, look.move
        changed = await self.records.put_progress(record, move.progress)
        event = rollout_event(record, move)
        if event:
            self.events.record(PLACEMENT_PLAN, record.obj, *event)
        if move.progress.ended:
            await self._finish(record, move.progress)
        elif record.plan in (NOT_SIGNED, EDITED) and (patch := label_patch(record)):
            await self.records.write(patch)
        return changed

    async def _finish(self, record: RolloutRecord, progress: RolloutProgress) -> None:
        await self.plans.end_rollout(record.namespace, record.name, progress.phase)
        patch = label_patch(replace(record, progress=progress))
        if patch:
            await self.records.write(patch)
            self.metrics.rollout_ended(progress.phase)


def _audit(look: _Look, refused: Sequence[RolloutWait]) -> None:
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


def _refused(outcomes: Sequence[ChangeResult]) -> tuple[RolloutWait, ...]:
    return tuple(
        RolloutWait(
            reason="HubRefused",
            message=f"the hub refused to {outcome.change}: {outcome.error}; it is tried again",
        )
        for outcome in outcomes
        if outcome.error is not None
    )
