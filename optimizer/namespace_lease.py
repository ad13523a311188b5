"""One writer at a time, across processes and namespaces: the plans of two optimizers never mix.

A Lease in the namespace is held while a plan is written. Its annotation says which plan was written
last, or is being written.
"""

import asyncio
import platform
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import uuid4

from dsf.api.names import PLAN_DIGEST_ANNOTATION
from dsf.kube.errors import Conflict, Forbidden, NotFound
from dsf.kube.kinds import NAMESPACE
from dsf.kube.port import Kube, Object
from dsf.runtime.leader_election.exclusive_section import (
    POLL_SECONDS,
    Occupied,
    run_exclusively,
)
from dsf.runtime.leader_election.held_lease import HeldLease
from dsf.runtime.leader_election.lease import LeaderElectionConfig
from optimizer.wire.request_problem import CONFLICT, NOT_FOUND, RequestProblem
from optimizer.writers_elsewhere import LEASE_NAME, WritersElsewhere

T = TypeVar("T")

LEASE_SECONDS = 15.0
"""A writer that died keeps others waiting for so long at most; the default of client-go."""

_RENEW_SHARE, _RETRY_SHARE = 2 / 3, 2 / 15  # of the duration; those of client-go
_ATTEMPTS = 3  # the Lease is also renewed meanwhile, at most once


class NamespaceLease:
    """The right to write generated objects into one namespace, while `write_alone` has it."""

    def __init__(self, lease: HeldLease) -> None:
        self._lease = lease
        self.last_plan = _last_plan(lease.found or {})
        self.unseen: Forbidden | None = None
        """Why nobody knows who writes in other namespaces; None if it is known."""

    def name_last_plan(self, refused: RequestProblem) -> RequestProblem:
        """Return a refusal that also names the plan that was written last."""
        if refused.status != CONFLICT or not self.last_plan:
            return refused
        return replace(refused, detail=f"{refused.detail}; last applied was plan {self.last_plan}")

    async def announce(self, digest: str) -> None:
        """Say which plan is written from now on; raises KubeError where the hub refuses."""
        for _ in range(_ATTEMPTS):
            try:
                if await self._lease.hold({PLAN_DIGEST_ANNOTATION: digest}):
                    return
            except Conflict:
                continue
        raise Conflict(f"the Lease {LEASE_NAME} changes all the time, or another process took it")


async def write_alone(
    kube: Kube,
    namespace: str,
    work: Callable[[NamespaceLease], Awaitable[T]],
    *,
    elsewhere: WritersElsewhere | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> T | RequestProblem:
    """Return what the work returns; refused while another process writes to the namespace.

    With `elsewhere`, the work also waits until nobody writes in other namespaces, and is refused if
    that lasts longer than a Lease. Refused too where the namespace does not exist: the API server
    then refuses the Lease. Raises KubeError where the Lease can't be read or written.
    """
    deadline = asyncio.get_running_loop().time() + lease_seconds + 1
    while True:
        turn = _Turn(namespace, elsewhere, deadline)
        outcome = await _hold_and(kube, namespace, partial(turn.take, work), lease_seconds)
        if not isinstance(outcome, _GivesWay):
            return outcome
        await turn.wait_for_earlier()


@dataclass(frozen=True, slots=True)
class _GivesWay:
    """The Lease is released because a namespace that goes first holds its own."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """Mutual exclusion over all namespaces: hold the own Lease first, then look at the others.

    Who finds no other Lease held may write: whoever takes one later finds this one. If two hold
    theirs, the later name in the alphabet gives way, so that they do not wait for each other.
    """

    namespace: str
    elsewhere: WritersElsewhere | None
    deadline: float

    async def take(
        self, work: Callable[[NamespaceLease], Awaitable[T]], lease: NamespaceLease
    ) -> T | RequestProblem | _GivesWay:
        """Do the work when nobody writes elsewhere; called while the own Lease is held."""
        try:
            while held := await self._held():
                if self._is_over():
                    return _refusal(*min(held.items()))
                if min(held) < self.namespace:
                    return _GivesWay()
                await asyncio.sleep(POLL_SECONDS)
        except Forbidden as error:
            lease.unseen = error
        return await work(lease)

    async def wait_for_earlier(self) -> None:
        """Wait until no namespace that goes first holds its Lease, or the time is over."""
        while min(await self._held(), default=self.namespace) < self.namespace:
            if self._is_over():
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _held(self) -> Mapping[str, Object]:
        return await self.elsewhere.held(self.namespace) if self.elsewhere else {}

    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.deadline


async def _hold_and(
    kube: Kube,
    namespace: str,
    work: Callable[[NamespaceLease], Awaitable[T]],
    lease_seconds: float,
) -> T | RequestProblem:
    config = LeaderElectionConfig(
        LEASE_NAME,
        namespace,
        f"{platform.node()}_{uuid4()}",
        lease_seconds=lease_seconds,
        renew_seconds=lease_seconds * _RENEW_SHARE,
        retry_seconds=lease_seconds * _RETRY_SHARE,
    )
    lease = HeldLease(kube, config)
    try:
        outcome = await run_exclusively(
            lease, lambda: work(NamespaceLease(lease)), patience_seconds=lease_seconds + 1
        )
    except NotFound as error:
        if error.details.get("kind") != NAMESPACE.plural:
            raise
        return _unknown(namespace)
    return _refusal(namespace, lease.found or {}) if isinstance(outcome, Occupied) else outcome


def _unknown(namespace: str) -> RequestProblem:
    return RequestProblem(
        status=NOT_FOUND,
        reason="UnknownNamespace",
        title="The namespace does not exist",
        detail=f"the hub has no namespace {namespace}; nothing was written",
    )


def _refusal(namespace: str, lease: Object) -> RequestProblem:
    plan = _last_plan(lease)
    return RequestProblem(
        status=CONFLICT,
        reason="AnotherWriter",
        title="Another optimizer is writing",
        detail=f"namespace {namespace}: plan {plan or 'of another request'} is being applied;"
        " plan again when it is done",
    )


def _last_plan(lease: Object) -> str:
    return str(
        ((lease.get("metadata") or {}).get("annotations") or {}).get(PLAN_DIGEST_ANNOTATION, "")
    )
