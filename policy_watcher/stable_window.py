"""The stable window: the claim becomes compliant only after compliance has lasted.

Each policy has its own window, so a new or replaced policy does not restart the windows of the
others. The claim is compliant only when every window is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policy_watcher.compliance import PolicyCompliance, PolicyVersion

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
