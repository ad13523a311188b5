"""The compliance of a managed cluster's policies, and the ClusterClaim that reports it to the hub.

The claim becomes compliant only after compliance has lasted for the stable window. Each policy has
its own window, so a new or replaced policy does not restart the windows of the others; the claim is
compliant only when every window is over.

Source: https://open-cluster-management.io/docs/concepts/cluster-inventory/clusterclaim/
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dsf.kube.changes import Change, diff
from dsf.kube.kinds import CLUSTER_CLAIM

COMPLIANT = "Compliant"


@dataclass(frozen=True, slots=True, order=True)
class PolicyVersion:
    """A policy with its uid and generation: a policy that was edited or replaced is another one."""

    name: str
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class PolicyCompliance:
    """The policies that exist, and those of them that are Compliant."""

    policies: frozenset[PolicyVersion] = frozenset()
    compliant: frozenset[PolicyVersion] = frozenset()

    @property
    def digest(self) -> str:
        """A hash of exactly these policies; it does not depend on their compliance."""
        lines = [f"{item.name}/{item.uid}/{item.generation}" for item in sorted(self.policies)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def policy_compliance(policies: Iterable[Mapping[str, Any]]) -> PolicyCompliance:
    """Return the compliance of Policy objects (`policy.open-cluster-management.io/v1`).

    A policy is compliant only if `status.compliant` is `Compliant`; a missing status is not.
    """
    seen = {_version(policy): policy for policy in policies}
    return PolicyCompliance(
        policies=frozenset(seen),
        compliant=frozenset(
            version
            for version, policy in seen.items()
            if (policy.get("status") or {}).get("compliant") == COMPLIANT
        ),
    )


def _version(policy: Mapping[str, Any]) -> PolicyVersion:
    metadata = policy["metadata"]
    return PolicyVersion(
        str(metadata["name"]), str(metadata.get("uid") or ""), int(metadata.get("generation") or 0)
    )


ClaimValue = Literal["compliant", "noncompliant", "empty"]


@dataclass(frozen=True, slots=True)
class StableWindow:
    """The time at which each policy became Compliant, in seconds of a monotonic clock."""

    since: Mapping[PolicyVersion, float] = field(default_factory=dict)


def step(
    state: StableWindow, compliance: PolicyCompliance, now: float, *, stable_seconds: float
) -> tuple[StableWindow, ClaimValue]:
    """Return the next state and the value of the claim.

    The value is `empty` without any policy, `compliant` when every policy has been Compliant for
    `stable_seconds` until `now`, and `noncompliant` otherwise.
    """
    after = StableWindow({policy: state.since.get(policy, now) for policy in compliance.compliant})
    if not compliance.policies:
        return after, "empty"
    stable = compliance.policies == compliance.compliant and all(
        now - since >= stable_seconds for since in after.since.values()
    )
    return after, "compliant" if stable else "noncompliant"


def resume(
    compliance: PolicyCompliance, now: float, *, published: str, digest: str, stable_seconds: float
) -> StableWindow:
    """Return the state to start from, given the claim that an earlier process published.

    A published claim that is compliant and about exactly the present policies stays compliant,
    because a restart must not evict workloads. Otherwise all windows start now.
    """
    if published != "compliant" or digest != compliance.digest:
        return StableWindow()
    return StableWindow(dict.fromkeys(compliance.compliant, now - stable_seconds))


POLICIES_ANNOTATION = "dynamic-scoring.open-cluster-management.io/observed-policies"
"""Digest of the policies that the claim's value is about."""


def claim_changes(
    name: str, value: ClaimValue, compliance: PolicyCompliance, observed: Mapping[str, Any] | None
) -> list[Change]:
    """Return the changes that give the claim `value` and the digest of the observed policies."""
    desired: dict[str, Any] = CLUSTER_CLAIM.object(
        metadata={"name": name, "annotations": {POLICIES_ANNOTATION: compliance.digest}},
        spec={"value": value},
    )
    return diff(CLUSTER_CLAIM, [desired], [dict(observed)] if observed else [])


def published_claim(claim: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the value of a claim and the digest of its policies; empty without a claim."""
    if claim is None:
        return "", ""
    annotations = claim["metadata"].get("annotations") or {}
    value = (claim.get("spec") or {}).get("value") or ""
    return str(value), str(annotations.get(POLICIES_ANNOTATION) or "")
