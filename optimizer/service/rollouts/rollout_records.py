"""The PlacementPlans of rollouts, as the optimizer reads, follows and continues them."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime

from dsf.api.names import OPTIMIZATION_LABEL
from dsf.kube.changes import Patch
from dsf.kube.errors import Forbidden
from dsf.kube.json_merge_patch import without_nulls
from dsf.kube.kinds import PLACEMENT_PLAN
from dsf.kube.port import Kube, Object, find_object
from dsf.runtime.reconcile.followed_view import FollowedView
from optimizer.domain.arrays import members_by_key
from optimizer.follow.record.recorded_plan import EDITED, NOT_SIGNED
from optimizer.follow.rollout.next_step import RolloutProgress
from optimizer.follow.rollout.rollout_record import (
    RolloutRecord,
    goes_on,
    is_rollout,
    optimization_of,
    progress_patch,
    revision_of,
    rollout_record,
)
from optimizer.service.observe import list_all
from optimizer.service.record_keys import RecordKeys


class RolloutRecords:
    """The records of rollouts: those of a hub, or of some of its namespaces."""

    def __init__(
        self, kube: Kube, keys: RecordKeys, namespaces: Sequence[str], now: Callable[[], datetime]
    ) -> None:
        self._kube = kube
        self._keys = keys
        self._namespaces = namespaces
        self._now = now
        self._plans_in = dict[str | None, FollowedView[RolloutRecord]]()
        self._lists_everywhere: bool | None = None

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

    def heard(self, namespace: str) -> float:
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

    async def read(self, namespace: str, name: str) -> RolloutRecord | None:
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

    async def put_progress(self, record: RolloutRecord, progress: RolloutProgress) -> bool:
        """Write a progress, unless the record says the same; raises Conflict if it has changed."""
        patch = progress_patch(record, progress, self._now())
        before = record.obj.get("status") or {}
        after = without_nulls(patch.body["status"])  # they say that a field is absent
        if all(before.get(field) == value for field, value in after.items()):
            return False
        await self.write(patch)
        return True

    async def write(self, patch: Patch) -> None:
        """Write a patch of a record."""
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
