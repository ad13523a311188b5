"""Executes the rollouts of a hub: makes their moves when it is time, and takes commands."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from prometheus_client import CollectorRegistry

from dsf.api.names import IN_PROGRESS, ROLLOUT_LABEL
from dsf.kube.errors import Conflict, Forbidden, KubeError, NotFound
from dsf.kube.kinds import PLACEMENT_PLAN
from dsf.kube.port import Kube, Object
from dsf.runtime.backoff import Backoff, Failures
from dsf.runtime.events import EventRecorder
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.recorded_plan import EDITED, NOT_SIGNED
from optimizer.follow.rollout.rollout_commands import after_command, no_rollout, not_ours
from optimizer.follow.rollout.rollout_record import progress_reason, status_of
from optimizer.service.metrics import OptimizerMetrics
from optimizer.service.namespace_lease import NamespaceWriters
from optimizer.service.observe import list_all
from optimizer.service.plan_records import PlanRecords
from optimizer.service.record_keys import RecordKeys
from optimizer.service.rollouts.rollout_moves import RolloutMoves
from optimizer.service.rollouts.rollout_records import RolloutRecords
from optimizer.wire.request_problem import ProblemKind, RequestProblem
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
        self._kube = kube
        self._keys = keys
        self._now = now
        self._metrics = metrics
        self._namespaces = settings.rollout_namespaces
        self._nudged = asyncio.Event()
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=CollectorRegistry())
        self.records = RolloutRecords(kube, keys, settings.rollout_namespaces, now)
        self._moves = RolloutMoves(
            kube, settings, self.records, plans, keys, writers, now, metrics, self._events
        )
        self.advance, self.check_rights = self._moves.advance, self._moves.check_rights

    async def run(self) -> None:
        """Advance all rollouts until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            group.create_task(self._advance_all())

    def nudge(self) -> None:
        """Look at the rollouts now: one has begun, or somebody has changed one."""
        self._nudged.set()

    async def command(
        self, namespace: str, optimization: str, command: RolloutCommand
    ) -> RolloutStatus | RequestProblem:
        """Pause, resume, undo or cancel the newest rollout of an optimization."""
        for _ in range(ATTEMPTS):
            record = await self.records.find(namespace, optimization)
            if record is None:
                return no_rollout(namespace, optimization)
            if await self._keys.known() is None:
                return ProblemKind.RECORD_NOT_SIGNED.because(
                    f"nothing was written: {self._keys.unreadable}; ask the optimizer's service,"
                    " which has the key"
                )
            if record.plan in (NOT_SIGNED, EDITED):
                return not_ours(record)
            changed = after_command(record.progress, command, self._now())
            if isinstance(changed, RequestProblem):
                return changed
            with suppress(Conflict):
                await self.records.put_progress(record, changed)
                self.nudge()
                newest = await self.records.find(namespace, optimization)
                return status_of(newest) if newest else no_rollout(namespace, optimization)
        raise Conflict(f"the rollout of {optimization} changes all the time")

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
                    await self._moves.wait_for(namespace, name, (wait,))
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
