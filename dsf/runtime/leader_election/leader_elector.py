"""Leader election: of several replicas, only one does the work at a time."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime

from prometheus_client import REGISTRY, CollectorRegistry

from dsf.kube.clock import utc_now
from dsf.kube.errors import KubeError
from dsf.kube.port import Kube
from dsf.runtime.leader_election.held_lease import HeldLease, LeaseLost
from dsf.runtime.leader_election.lease import LeaderElectionConfig
from dsf.runtime.metrics import controller_metrics

log = logging.getLogger(__name__)

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
