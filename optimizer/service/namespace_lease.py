"""One writer at a time, across processes and namespaces: the plans of two optimizers never mix.

A Lease in the namespace is held while a plan is written. Its annotation says which plan was written
last, or is being written.
"""

import asyncio
import logging
import platform
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

from dsf.api.names import PLAN_DIGEST_ANNOTATION
from dsf.kube.errors import Conflict, Forbidden, NotFound
from dsf.kube.kinds import LEASE, NAMESPACE
from dsf.kube.port import Kube, Object, find_object, list_objects
from dsf.runtime.leader_election import POLL_SECONDS, HeldLease, Occupied, run_exclusively
from dsf.runtime.lease import LeaderElectionConfig, ObservedLease, decide
from optimizer.wire.request_problem import ProblemKind, RequestProblem

T = TypeVar("T")

_log = logging.getLogger(__name__)

LEASE_NAME = "dynamic-scoring-optimizer"
"""The Lease of each namespace; its holder is the optimizer that writes there."""

LEASE_SECONDS = 15.0
"""A writer that died keeps others waiting for so long at most; the default of client-go."""

_RENEW_SHARE, _RETRY_SHARE = 2 / 3, 2 / 15  # of the duration; those of client-go
_PATIENCE_LEASES = 4  # that one namespace keeps others waiting; thousands of writes take less
_REGAINED_SHARE = 0.1  # of the time in which a namespace keeps nobody waiting
_NEXT_LOOK_SECONDS = 5.0  # nobody knows what was between looks that are further apart
_ATTEMPTS = 3  # the Lease is also renewed meanwhile, at most once


def lease_config(name: str, namespace: str, identity: str, seconds: float) -> LeaderElectionConfig:
    """Return how a Lease that lasts so long is held."""
    return LeaderElectionConfig(
        name,
        namespace,
        identity,
        lease_seconds=seconds,
        renew_seconds=seconds * _RENEW_SHARE,
        retry_seconds=seconds * _RETRY_SHARE,
    )


class NamespaceLease:
    """The right to write generated objects into one namespace; see `NamespaceWriters`."""

    def __init__(self, lease: HeldLease) -> None:
        self._lease = lease
        self.last_plan = _last_plan(lease.found or {})
        self.unseen: Forbidden | None = None
        """Why nobody knows who writes in other namespaces; None if it is known."""

    async def announce(self, digest: str) -> None:
        """Say which plan is written from now on; raises KubeError where the hub refuses."""
        for _ in range(_ATTEMPTS):
            try:
                if await self._lease.hold({PLAN_DIGEST_ANNOTATION: digest}):
                    return
            except Conflict:
                continue
        raise Conflict(f"the Lease {LEASE_NAME} changes all the time, or another process took it")


class NamespaceWriters:
    """Lets one writer at a time write to a namespace, of this process and of all others.

    `identity` names this process in its Leases. A process that is restarted with the identity of
    its predecessor takes over the Leases that it left; no two that run at once may share one. By
    default it is the host's name and a random number.
    """

    def __init__(
        self, kube: Kube, *, identity: str = "", lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._kube = kube
        self.identity = identity or f"{platform.node()}_{uuid4()}"
        self._lease_seconds = lease_seconds
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._seen: dict[str, ObservedLease | None] = {}
        self._waited: dict[str, _Waited] = {}

    async def write_alone(
        self,
        namespace: str,
        work: Callable[[NamespaceLease], Awaitable[T]],
        *,
        everywhere: bool = True,
    ) -> T | RequestProblem:
        """Return what the work returns; refused while somebody else writes to the namespace.

        With `everywhere`, the work also waits until nobody writes in other namespaces: for each of
        them no longer than four Leases, and refused if all of them take longer. Refused too where
        the namespace does not exist: the API server then refuses the Lease. Raises KubeError where
        the Lease can't be read or written.
        """
        deadline = asyncio.get_running_loop().time() + self._lease_seconds + 1
        turn = self._turns.setdefault(namespace, asyncio.Lock())
        try:
            async with asyncio.timeout_at(deadline):
                await turn.acquire()
        except TimeoutError:
            held = await find_object(self._kube, LEASE, LEASE_NAME, namespace)
            return _refusal(namespace, held or {})
        try:
            deadline += (_PATIENCE_LEASES - 1) * self._lease_seconds
            return await self._take_turn(namespace, work, deadline if everywhere else None)
        finally:
            turn.release()

    async def _take_turn(
        self, namespace: str, work: Callable[[NamespaceLease], Awaitable[T]], deadline: float | None
    ) -> T | RequestProblem:
        turn = _Turn(namespace, self._held, deadline)
        while True:
            outcome = await self._hold_and(namespace, partial(turn.take, work))
            if not isinstance(outcome, _GivesWay):
                return outcome
            await turn.wait_for_earlier()

    async def _hold_and(
        self, namespace: str, work: Callable[[NamespaceLease], Awaitable[T]]
    ) -> T | RequestProblem:
        lease = HeldLease(self._kube, self._config(namespace))
        try:
            outcome = await run_exclusively(
                lease, lambda: work(NamespaceLease(lease)), patience_seconds=self._lease_seconds + 1
            )
        except NotFound as error:
            if error.details.get("kind") != NAMESPACE.plural:
                raise
            return ProblemKind.MISSING_NAMESPACE.because(
                f"the hub has no namespace {namespace}; nothing was written"
            )
        if isinstance(outcome, Occupied):
            return _refusal(namespace, lease.found or {})
        return outcome

    def _config(self, namespace: str) -> LeaderElectionConfig:
        """Return how the Lease of a namespace is held; nobody is believed a longer duration."""
        seconds = self._lease_seconds
        config = lease_config(LEASE_NAME, namespace, self.identity, seconds)
        return replace(config, longest_seconds=seconds)

    async def _held(self, namespace: str) -> Mapping[str, Object]:
        """Return the held Leases of other namespaces that are waited for, by namespace.

        Raises KubeError where Leases can't be listed in all namespaces.
        """
        leases = await list_objects(self._kube, LEASE, fields=f"metadata.name={LEASE_NAME}")
        by_namespace = {str(item["metadata"]["namespace"]): item for item in leases}
        at = asyncio.get_running_loop().time()
        return {
            name: lease
            for name, lease in by_namespace.items()
            if name != namespace and self._is_waited_for(name, lease, at)
        }

    def _is_waited_for(self, namespace: str, lease: Object, at: float) -> bool:
        """Tell whether somebody writes to a namespace: this process knows of its own turns.

        Whoever may write Leases in any namespace can hold one there for ever, so others wait for it
        for a bounded time.
        """
        if (lease.get("spec") or {}).get("holderIdentity") == self.identity:
            turn = self._turns.get(namespace)
            return turn is not None and turn.locked()
        held = self._is_held(namespace, lease, at)
        waited = self._waited.setdefault(namespace, _Waited(at))
        most = _PATIENCE_LEASES * self._lease_seconds
        if waited.look(at, most, held=held):
            _log.warning(
                "the Lease of another namespace is not waited for any longer",
                extra={"namespace": namespace, "seconds": most},
            )
        return held and waited.seconds < most

    def _is_held(self, namespace: str, lease: Object, at: float) -> bool:
        """Tell whether another process holds a Lease: whether one that asked would not get it."""
        decision = decide(self._config(namespace), lease, self._seen.get(namespace), at=at, now="")
        self._seen[namespace] = decision.observed
        return decision.write is None


class _Waited:
    """How long this process has waited for one other namespace, in `seconds`.

    They grow while each look finds the Lease held, up to a bound, and shrink ten times slower. The
    Lease may be renewed, or released and taken again, meanwhile: that is what a tenant would do.
    """

    def __init__(self, at: float) -> None:
        self.seconds = 0.0
        self._at = at
        self._held = False

    def look(self, at: float, most: float, *, held: bool) -> bool:
        """Count the time since the last look; return whether that used up what is waited for."""
        passed, before = at - self._at, self.seconds
        waiting = held and self._held and passed <= _NEXT_LOOK_SECONDS
        grown = before + (passed if waiting else -passed * _REGAINED_SHARE)
        self.seconds, self._at, self._held = min(max(grown, 0.0), most), at, held
        return before < most <= self.seconds


@dataclass(frozen=True, slots=True)
class _GivesWay:
    """The Lease is released because a namespace that goes first holds its own."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """Mutual exclusion over all namespaces: hold the own Lease first, then look at the others.

    Who finds no other Lease held may write: whoever takes one later finds this one. If two hold
    theirs, the later name in the alphabet gives way, so that they do not wait for each other.
    Without a `deadline`, nobody is waited for.
    """

    namespace: str
    held_elsewhere: Callable[[str], Awaitable[Mapping[str, Object]]]
    deadline: float | None

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
        return {} if self.deadline is None else await self.held_elsewhere(self.namespace)

    def _is_over(self) -> bool:
        return self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline


def _refusal(namespace: str, lease: Object) -> RequestProblem:
    plan = _last_plan(lease)
    return ProblemKind.ANOTHER_WRITER.because(
        f"namespace {namespace}: plan {plan or 'of another request'} is being applied;"
        " plan again when it is done"
    )


def _last_plan(lease: Object) -> str:
    return str(
        ((lease.get("metadata") or {}).get("annotations") or {}).get(PLAN_DIGEST_ANNOTATION, "")
    )
