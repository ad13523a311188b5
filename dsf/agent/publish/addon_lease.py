"""The add-on's Lease: it tells OCM that the add-on is available, and agents which one publishes.

OCM looks for a Lease with the add-on's name in the add-on's namespace. The add-on is available if
the Lease was renewed within the last five minutes. If OCM's add-on manager deploys the agent from a
template, OCM checks the availability of the Deployment instead.

Source: registration/spoke/addon/lease_controller.go of OCM 1.2.1.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.api import names
from dsf.api.times import micro_time
from dsf.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dsf.kube.kinds import LEASE
from dsf.kube.port import Kube, Object
from dsf.runtime.lease import LeaderElectionConfig, ObservedLease, decide, released

log = logging.getLogger(__name__)

SECONDS = 60
"""A holder that does not renew the Lease for this long has lost it; OCM waits 5 minutes."""

RENEWALS = 3
"""Renewals within `SECONDS`: two may fail."""

CALL_SECONDS = 10.0
"""The time limit of one renewal: less than the time between two."""

READY_POLL_SECONDS = 0.1
"""How often an agent that is not ready yet looks whether it has to take the Lease."""

ATTEMPTS = 3
"""Attempts of one renewal while other agents change the Lease."""


@dataclass(slots=True)
class AddOnLease:
    """Holds the Lease for one agent, and tells its `identity` who else holds it.

    If the Lease can't be read or written, the agent continues as before; if it stands by, it stops
    doing so after it has seen no renewal for `SECONDS`. The Lease is read by empty patches, because
    they need no permission besides that for renewals.
    """

    kube: Kube
    namespace: str
    holder: str
    identity: PublisherIdentity
    now: Callable[[], datetime]
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    _observed: Object | None = None
    _seen: ObservedLease | None = None

    async def keep(self, ready: Callable[[], bool]) -> None:
        """Renew the Lease while the agent is ready, until cancelled; then release it."""
        refused = ""
        try:
            while True:
                if ready():
                    error = await self.renew()
                    if error and error != refused:
                        log.warning("lease not renewed", extra={"lease": names.ADDON, "why": error})
                    refused = error
                await asyncio.sleep(SECONDS / RENEWALS if ready() else READY_POLL_SECONDS)
        finally:
            await self._release()

    async def renew(self) -> str:
        """Renew the Lease, or create it; return the error, empty if there was none."""
        error = ""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._renew()
        except TimeoutError:
            error = f"no answer within {CALL_SECONDS:g} s"
        except KubeError as refused:
            error = f"{type(refused).__name__}: {refused}"
        if error and self.identity.rival and self._is_over():
            log.warning("stand-by ended: no renewal seen", extra={"lease": names.ADDON})
            self.identity.rival = ""
        self.decided.set()
        return error

    def _is_over(self) -> bool:
        return not self._seen or self._seen.at + SECONDS <= asyncio.get_running_loop().time()

    async def _renew(self) -> None:
        for _ in range(ATTEMPTS):
            with suppress(AlreadyExists, Conflict):  # another agent was quicker
                return await self._attempt()
        raise Conflict(f"other agents changed it {ATTEMPTS} times")

    async def _attempt(self) -> None:
        observed = self._observed or await self._read()
        at = asyncio.get_running_loop().time()
        verdict = decide(self._candidacy, observed, self._seen, at=at, now=micro_time(self.now()))
        self._seen, self._observed = verdict.observed, None  # read again if the write fails
        if verdict.write is None:
            self._note(observed or {}, rival=str((observed or {})["spec"]["holderIdentity"]))
        else:
            self._observed = await self._write(observed, verdict.write)
            self._note(self._observed, rival="")

    async def _write(self, observed: Object | None, lease: Object) -> Object:
        if observed is None:
            return await self.kube.create(LEASE, lease)
        version = observed["metadata"]["resourceVersion"]
        return await self._patch({"metadata": {"resourceVersion": version}, "spec": lease["spec"]})

    async def _read(self) -> Object | None:
        try:
            return await self._patch({})
        except NotFound:
            return None

    async def _patch(self, patch: Object) -> Object:
        return await self.kube.patch(LEASE, names.ADDON, patch, self.namespace)

    async def _release(self) -> None:
        """Release the Lease, so that the next agent need not wait until it expires."""
        if self._observed is None:
            return
        given_up = released(self._candidacy, self._observed, now=micro_time(self.now()))
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(CALL_SECONDS):
                if given_up:
                    await self._write(self._observed, given_up)

    def _note(self, lease: Object, *, rival: str) -> None:
        if rival != self.identity.rival:
            state = f"held by {rival}: standing by" if rival else "held"
            log.warning("the add-on's lease is %s", state, extra={"lease": names.ADDON})
        self.identity.take(str(lease["metadata"]["uid"]))
        self.identity.rival = rival

    @property
    def _candidacy(self) -> LeaderElectionConfig:
        return LeaderElectionConfig(names.ADDON, self.namespace, self.holder, lease_seconds=SECONDS)
