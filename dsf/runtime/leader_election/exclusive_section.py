"""Runs work that only one process may do at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dsf.kube.port import Object
from dsf.runtime.leader_election.held_lease import HeldLease, LeaseLost

T = TypeVar("T")

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
        found = (lease.found or {}).get("spec") or {}
        renewed = found != last and found.get("holderIdentity") == last.get("holderIdentity")
        if renewed or asked >= deadline:
            return Occupied(lease.found or {})
        last = found
        await asyncio.sleep(POLL_SECONDS)
