"""Work that only one process at a time does, each process once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dsf.kube.port import Object
from dsf.runtime.leader_election.held_lease import HeldLease, LeaseLost

T = TypeVar("T")

POLL_SECONDS = 0.1
"""Pause between two looks at a Lease that another process holds: most hold it for less than 1 s."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """The work was not done, or was cancelled, because of the process that holds this Lease."""

    lease: Object

    @property
    def holder(self) -> str:
        """The identity of the process that holds the Lease; empty where it gave it back."""
        return str((self.lease.get("spec") or {}).get("holderIdentity") or "")


async def run_exclusively(
    lease: HeldLease, work: Callable[[], Awaitable[T]], *, patience_seconds: float
) -> T | Occupied:
    """Return what the work returns, or who keeps it from being done.

    A process that died holds its Lease until it expires, so `patience_seconds` should be longer
    than the Lease lasts; a holder that renews its Lease is not waited for. Work whose Lease is
    lost is cancelled. Raises KubeError where the Lease can't be read or written.
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
    """Return when the Lease was asked for, in seconds of the loop's time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    last: dict[str, Any] = {}
    while True:
        asked = loop.time()
        if await lease.hold():
            return asked
        found = (lease.found or {}).get("spec") or {}
        renewed = found != last and found.get("holderIdentity") == last.get("holderIdentity")
        if renewed or asked >= deadline:
            return Occupied(lease.found or {})
        last = found
        await asyncio.sleep(POLL_SECONDS)
