"""A Lease that one process holds: for leader election, or for a section that only one may enter.

Of several replicas, only one does the work at a time. `dsf.runtime.lease` decides who.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry

from dsf.api.times import micro_time
from dsf.kube.clock import utc_now
from dsf.kube.errors import AlreadyExists, Conflict, KubeError
from dsf.kube.kinds import LEASE
from dsf.kube.port import Kube, Object, find_object
from dsf.runtime.lease import LeaderElectionConfig, ObservedLease, decide, released
from dsf.runtime.metrics import controller_metrics

log = logging.getLogger(__name__)

T = TypeVar("T")

Lead = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
"""Runs the work that it is given while this process leads."""


async def alone(work: Callable[[], Awaitable[None]]) -> None:
    """Run the work as the only process there is."""
    await work()


RELEASE_SECONDS = 5.0
"""Time limit of a release; after it, the Lease stays until it expires."""


class LeaseLost(Exception):
    """The work was cancelled: the Lease could not be renewed in time, or another holder has it."""


class HeldLease:
    """A Lease that this process holds or wants to hold.

    `held` tells whether this process holds it. `found` is the Lease as it was last read, before any
    write of this process.
    """

    def __init__(
        self, kube: Kube, candidacy: LeaderElectionConfig, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self.held = False
        self.found: Object | None = None
        self._kube = kube
        self._candidacy = candidacy
        self._now = now
        self._seen: ObservedLease | None = None

    async def hold(self, annotations: Mapping[str, str] | None = None) -> bool:
        """Acquire or renew the Lease; return whether this process holds it.

        Raises KubeError if the Lease can't be read or written. Raises Conflict if another process
        wrote it first while this one held it; the next call returns whether it still does.
        """
        lease = self.found = await self._read()
        at = asyncio.get_running_loop().time()
        decision = decide(self._candidacy, lease, self._seen, at=at, now=micro_time(self._now()))
        self._seen = decision.observed
        if decision.write is None:
            return False
        write = _annotated(decision.write, annotations or {})
        try:
            if lease is None:
                await self._kube.create(LEASE, write)
            else:
                await self._kube.update(LEASE, write)
        except (AlreadyExists, Conflict):
            if self.held:
                raise
            return False
        return True

    async def run(self, work: Callable[[], Awaitable[T]], asked: float) -> T:
        """Return the result of the work; renew the Lease until the work ends.

        `asked` is when the Lease was requested, in seconds of the event loop's clock: no other
        process measures the duration of the Lease from an earlier time. If the Lease is lost,
        cancels the work and raises LeaseLost.
        """
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._keep(asked))
        self.held = True
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            renewing.result()
            raise LeaseLost
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            self.held = False

    async def _keep(self, asked: float) -> None:
        """Renew the Lease; return if renewals fail for too long or another process holds it."""
        loop = asyncio.get_running_loop()
        seconds = self._candidacy.renew_seconds
        held_until = asked + seconds
        while True:
            await asyncio.sleep(min(self._candidacy.retry_seconds, held_until - loop.time()))
            asked = loop.time()
            try:
                # One call that hangs must leave time for another.
                async with asyncio.timeout_at(min(held_until, asked + seconds / 2)):
                    if not await self.hold():
                        return
                held_until = asked + seconds
            except (KubeError, TimeoutError) as error:
                log.warning("lease not renewed", extra=self.fields(error=str(error)))
                if loop.time() >= held_until:
                    return

    async def release(self) -> None:
        """Release the Lease, so that the next holder need not wait; if that fails, it expires."""
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._read()
                free = (
                    released(self._candidacy, lease, now=micro_time(self._now())) if lease else None
                )
                if free:
                    await self._kube.update(LEASE, free)

    def fields(self, **fields: str) -> dict[str, str]:
        """Return the fields of a log line about this Lease."""
        return {"lease": self._candidacy.name, "identity": self._candidacy.identity, **fields}

    async def _read(self) -> Object | None:
        name, namespace = self._candidacy.name, self._candidacy.namespace
        return await find_object(self._kube, LEASE, name, namespace)


def _annotated(lease: dict[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = lease["metadata"]
    both = {**(metadata.get("annotations") or {}), **annotations}
    return {**lease, "metadata": {**metadata, "annotations": both}}


Work = Callable[[], Awaitable[None]]

JITTER = 0.2
"""Share of the pause between two attempts that is drawn, so that candidates don't collide."""


class LeaderElector:
    """Runs work while this process leads.

    If a leader cannot renew its Lease for `renew_seconds`, or finds another holder, its work is
    cancelled and it waits to lead again. It releases the Lease when it ends, so that another
    replica can lead at once. Metric: `leader_election_master_status{name}`, 1 while leading.
    """

    def __init__(
        self,
        kube: Kube,
        candidacy: LeaderElectionConfig,
        *,
        now: Callable[[], datetime] = utc_now,
        draw: Callable[[], float] = random.random,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._lease = HeldLease(kube, candidacy, now=now)
        self._retry_seconds = candidacy.retry_seconds
        self._draw = draw
        self._status = controller_metrics(registry).leader.labels(candidacy.name)

    @property
    def leading(self) -> bool:
        """Whether this process leads."""
        return self._lease.held

    async def run(self, work: Work) -> None:
        """Run the work whenever leading, until the work ends or raises, or until cancelled."""
        ended = False
        while not ended:
            asked = await self._acquire()
            try:
                ended = await self._lead(work, asked)
            finally:
                await self._lease.release()

    async def _acquire(self) -> float:
        """Return when the Lease was requested, in seconds of the event loop's clock."""
        while True:
            asked = asyncio.get_running_loop().time()
            try:
                if await self._lease.hold():
                    return asked
            except (KubeError, TimeoutError) as error:
                log.warning("lease not read or written", extra=self._lease.fields(error=str(error)))
            await asyncio.sleep(self._retry_seconds * (1 + JITTER * self._draw()))

    async def _lead(self, work: Work, asked: float) -> bool:
        """Return True if the work ended, False if the Lease was lost."""
        self._note(leading=True)
        try:
            await self._lease.run(work, asked)
        except LeaseLost:
            return False
        finally:
            self._note(leading=False)
        return True

    def _note(self, *, leading: bool) -> None:
        self._status.set(leading)
        log.info("leading" if leading else "no longer leading", extra=self._lease.fields())


POLL_SECONDS = 0.1
"""Pause between two reads of a Lease that another process holds: most hold it for less than 1 s."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """The work was not done, or was cancelled, because another process holds this Lease."""

    lease: Object


async def run_exclusively(
    lease: HeldLease, work: Callable[[], Awaitable[T]], *, patience_seconds: float
) -> T | Occupied:
    """Return the result of the work, or Occupied if another process holds the Lease.

    Waits up to `patience_seconds` for a Lease that its holder does not renew. This should be longer
    than the duration of the Lease, because the Lease of a process that died remains until it
    expires. Cancels the work if the Lease is lost. Raises KubeError if the Lease can't be read or
    written.
    """
    asked = await _acquire(lease, patience_seconds)
    if isinstance(asked, Occupied):
        return asked
    try:
        return await lease.run(work, asked)
    except LeaseLost:
        return Occupied(lease.found or {})
    finally:
        await lease.release()


async def _acquire(lease: HeldLease, patience_seconds: float) -> float | Occupied:
    """Return when the Lease was requested, in seconds of the event loop's clock."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    last: dict[str, Any] = {}
    while True:
        asked = loop.time()
        if await lease.hold():
            return asked
        spec = (lease.found or {}).get("spec") or {}
        renewed = spec != last and spec.get("holderIdentity") == last.get("holderIdentity")
        if renewed or asked >= deadline:
            return Occupied(lease.found or {})
        last = spec
        await asyncio.sleep(POLL_SECONDS)
