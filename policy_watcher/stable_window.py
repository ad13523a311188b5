"""The stable window: compliance counts once it has lasted.

Each policy has a window of its own, so that a new or replaced policy starts one without touching
the others, and the claim is compliant only when every window is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policy_watcher.compliance import PolicyCompliance, PolicyVersion

ClaimValue = Literal["compliant", "noncompliant", "empty"]


@dataclass(frozen=True, slots=True)
class StableWindow:
    """Since when each policy has been seen Compliant without a break, in seconds of one clock."""

    since: Mapping[PolicyVersion, float] = field(default_factory=dict)


def step(
    state: StableWindow, verdict: PolicyCompliance, now: float, *, stable_seconds: float
) -> tuple[StableWindow, ClaimValue]:
    """Return the next state and the value that the claim has to have.

    `empty` without any policy; `compliant` when every policy has been Compliant for
    `stable_seconds` up to `now`; else `noncompliant`.
    """
    after = StableWindow({policy: state.since.get(policy, now) for policy in verdict.compliant})
    if not verdict.policies:
        return after, "empty"
    stable = verdict.policies == verdict.compliant and all(
        now - since >= stable_seconds for since in after.since.values()
    )
    return after, "compliant" if stable else "noncompliant"


def resume(
    verdict: PolicyCompliance, now: float, *, published: str, digest: str, stable_seconds: float
) -> StableWindow:
    """Return the state to start from, given the claim that an earlier process published.

    A compliant claim about exactly the policies of now goes on: a restart must not drive
    workloads away. Whatever else was published, all windows start anew.
    """
    if published != "compliant" or digest != verdict.digest:
        return StableWindow()
    return StableWindow(dict.fromkeys(verdict.compliant, now - stable_seconds))
