"""Decide who holds a Lease; pure, the times are passed in.

The rules are client-go's. A Lease is held until its duration has passed on our own clock since we
last saw it change. Times written by others are never compared with our clock, so clock skew between
replicas does no harm.

Source: https://kubernetes.io/docs/concepts/architecture/leases/ (coordination.k8s.io/v1)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsf.kube.kinds import LEASE

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LeaderElectionConfig:
    """The Lease to hold, and who wants it; `identity` is unique per process.

    `longest_seconds`: no other holder is believed a longer duration, since a Lease that nobody
    renews would keep everybody out for ever.
    """

    name: str
    namespace: str
    identity: str
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0
    longest_seconds: float = 3_600.0


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A version of the Lease, and when we first saw it, in seconds of a monotonic clock."""

    version: str
    at: float


@dataclass(frozen=True, slots=True)
class LeaseDecision:
    """The Lease to write, or None, and the Lease as observed."""

    write: dict[str, Any] | None
    observed: ObservedLease | None


def decide(
    candidacy: LeaderElectionConfig,
    lease: Object | None,
    seen: ObservedLease | None,
    *,
    at: float,
    now: str,
) -> LeaseDecision:
    """Return the Lease that makes or keeps us the holder; no Lease while another process holds it.

    `at` is monotonic time in seconds, `now` is wall-clock time as MicroTime.
    """
    if lease is None:
        return LeaseDecision(_lease(candidacy, {}, {}, now=now, taken=True), None)
    version = str(lease["metadata"].get("resourceVersion", ""))
    observed = seen if seen and seen.version == version else ObservedLease(version, at)
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    duration = float(spec.get("leaseDurationSeconds") or candidacy.lease_seconds)
    longest = max(candidacy.longest_seconds, candidacy.lease_seconds)
    held = bool(holder) and at < observed.at + min(duration, longest)
    if held and holder != candidacy.identity:
        return LeaseDecision(None, observed)
    ours = holder == candidacy.identity
    return LeaseDecision(
        _lease(candidacy, lease["metadata"], spec, now=now, taken=not ours), observed
    )


def released(candidacy: LeaderElectionConfig, lease: Object, *, now: str) -> dict[str, Any] | None:
    """Return the Lease without a holder, so that others need not wait; None if it is not ours."""
    spec = lease.get("spec") or {}
    if spec.get("holderIdentity") != candidacy.identity:
        return None
    given_up = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
    return {**lease, "spec": given_up}


def _lease(
    candidacy: LeaderElectionConfig,
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    *,
    now: str,
    taken: bool,
) -> dict[str, Any]:
    before = int(spec.get("leaseTransitions") or 0)
    return LEASE.object(
        metadata={**metadata, "name": candidacy.name, "namespace": candidacy.namespace},
        spec={
            **spec,
            "holderIdentity": candidacy.identity,
            "leaseDurationSeconds": math.ceil(candidacy.lease_seconds),
            "acquireTime": now if taken else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": before + 1 if taken and spec else before,
        },
    )
