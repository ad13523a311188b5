"""Leader election: of several processes, one at a time does the work."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

from prometheus_client import REGISTRY, CollectorRegistry

from dsf.kube.clock import utc_now
from dsf.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dsf.kube.kinds import LEASE
from dsf.kube.port import Kube, Object
from dsf.runtime.leader_election.lease import LeaderElectionConfig, ObservedLease, decide, released
from dsf.runtime.metrics import controller_metrics

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]

JITTER = 0.2
RELEASE_SECONDS = 5.0


class LeaderElector:
    """Has work done while this process leads.

    A leader that could not renew for `renew_seconds`, or finds another one, has its work
    cancelled, and waits to lead again. It gives the Lease back when it ends, so that the next one
    leads at once. Metric: `leader_election_master_status{name}`, 1 while leading.
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
        self.leading = False
        self._kube = kube
        self._candidacy = candidacy
        self._now = now
        self._draw = draw
        self._seen: ObservedLease | None = None
        self._status = controller_metrics(registry).leader.labels(candidacy.name)

    async def run(self, work: Work) -> None:
        """Do the work whenever leading, until it ends or raises, or until cancelled."""
        ended = False
        while not ended:
            asked = await self._acquire()
            try:
                ended = await self._lead(work, asked)
            finally:
                await self._release()

    async def _acquire(self) -> float:
        """Return when the Lease was asked for: others may count from that time on."""
        while True:
            asked = asyncio.get_running_loop().time()
            try:
                if await self._hold():
                    return asked
            except (KubeError, TimeoutError) as error:
                log.warning("lease not read or written", extra=self._fields(error=str(error)))
            await asyncio.sleep(self._candidacy.retry_seconds * (1 + JITTER * self._draw()))

    async def _lead(self, work: Work, asked: float) -> bool:
        """Return whether the work has ended, False where the Lease is lost."""
        self._note(leading=True)
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew(asked))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                return True
            renewing.result()
            return False
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            self._note(leading=False)

    async def _renew(self, asked: float) -> None:
        """Renew the Lease until that has failed for too long, or another one has it."""
        loop = asyncio.get_running_loop()
        seconds = self._candidacy.renew_seconds
        held_until = asked + seconds
        while True:
            await asyncio.sleep(min(self._candidacy.retry_seconds, held_until - loop.time()))
            asked = loop.time()
            try:
                # One call that hangs must leave time for another.
                async with asyncio.timeout_at(min(held_until, asked + seconds / 2)):
                    if not await self._hold():
                        return
                held_until = asked + seconds
            except (KubeError, TimeoutError) as error:
                log.warning("lease not renewed", extra=self._fields(error=str(error)))
                if loop.time() >= held_until:
                    return

    async def _hold(self) -> bool:
        """Make this process the leader, or keep it so; tell whether it is."""
        lease = await self._read()
        at = asyncio.get_running_loop().time()
        verdict = decide(self._candidacy, lease, self._seen, at=at, now=self._stamp())
        self._seen = verdict.sighting
        if verdict.write is None:
            return False
        try:
            if lease is None:
                await self._kube.create(LEASE, verdict.write)
            else:
                await self._kube.update(LEASE, verdict.write)
        except (AlreadyExists, Conflict):
            # Somebody was quicker; a leader finds out with its next attempt whether it still is.
            if self.leading:
                raise
            return False
        return True

    async def _read(self) -> Object | None:
        try:
            return await self._kube.get(LEASE, self._candidacy.name, self._candidacy.namespace)
        except NotFound:
            return None

    async def _release(self) -> None:
        """Give the Lease back; where that fails it expires."""
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._read()
                free = released(self._candidacy, lease, now=self._stamp()) if lease else None
                if free:
                    await self._kube.update(LEASE, free)

    def _note(self, *, leading: bool) -> None:
        self.leading = leading
        self._status.set(leading)
        log.info("leading" if leading else "no longer leading", extra=self._fields())

    def _fields(self, **fields: str) -> dict[str, str]:
        return {"lease": self._candidacy.name, "identity": self._candidacy.identity, **fields}

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
