"""One writer per namespace, across processes: the plans of two optimizers never mix.

A Lease in the namespace is held while a plan is written. Its annotation says which plan was written
last, or is being written.
"""

import platform
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar
from uuid import uuid4

from dsf.api.names import PLAN_DIGEST_ANNOTATION
from dsf.kube.errors import Conflict, NotFound
from dsf.kube.kinds import NAMESPACE
from dsf.kube.port import Kube
from dsf.runtime.leader_election.exclusive_section import Occupied, run_exclusively
from dsf.runtime.leader_election.held_lease import HeldLease
from dsf.runtime.leader_election.lease import LeaderElectionConfig
from optimizer.wire.request_problem import CONFLICT, NOT_FOUND, RequestProblem

T = TypeVar("T")

LEASE_NAME = "dynamic-scoring-optimizer"
LEASE_SECONDS = 15.0
"""A writer that died keeps others waiting for so long at most; the default of client-go."""

_RENEW_SHARE, _RETRY_SHARE = 2 / 3, 2 / 15  # of the duration; those of client-go
_ATTEMPTS = 3  # the Lease is also renewed meanwhile, at most once


class NamespaceLease:
    """The right to write generated objects into one namespace, while `write_alone` has it."""

    def __init__(self, lease: HeldLease) -> None:
        self._lease = lease
        annotations = ((lease.found or {}).get("metadata") or {}).get("annotations") or {}
        self.last_plan: str = annotations.get(PLAN_DIGEST_ANNOTATION, "")

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
    lease_seconds: float = LEASE_SECONDS,
) -> T | RequestProblem:
    """Return what the work returns; refused while another process writes to the namespace.

    Refused too where the namespace does not exist: the API server then refuses the Lease. Raises
    KubeError where the Lease can't be read or written.
    """
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
    return _refusal(namespace, lease) if isinstance(outcome, Occupied) else outcome


def _unknown(namespace: str) -> RequestProblem:
    return RequestProblem(
        status=NOT_FOUND,
        reason="UnknownNamespace",
        title="The namespace does not exist",
        detail=f"the hub has no namespace {namespace}; nothing was written",
    )


def _refusal(namespace: str, lease: HeldLease) -> RequestProblem:
    plan = NamespaceLease(lease).last_plan
    return RequestProblem(
        status=CONFLICT,
        reason="AnotherWriter",
        title="Another optimizer is writing to the namespace",
        detail=f"namespace {namespace}: plan {plan or 'of another request'} is being applied;"
        " plan again when it is done",
    )
