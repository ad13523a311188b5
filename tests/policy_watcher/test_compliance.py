"""The claim: what counts as compliant, and for how long it must have been so."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_watcher.compliance import (
    ClaimValue,
    PolicyCompliance,
    PolicyVersion,
    StableWindow,
    policy_compliance,
    resume,
    step,
)
from tests.policy_watcher.builders import policy

STABLE = 120.0


def claims(*looks: tuple[float, list[dict[str, Any]]], stable: float = STABLE) -> list[ClaimValue]:
    state, values = StableWindow(), []
    for now, policies in looks:
        state, value = step(state, policy_compliance(policies), now, stable_seconds=stable)
        values.append(value)
    return values


def test_no_policy_is_empty() -> None:
    assert claims((0, []), (500, [])) == ["empty", "empty"]


def test_compliant_only_after_the_whole_window() -> None:
    looks = [(now, [policy()]) for now in (0.0, 60.0, 119.9, 120.0, 150.0)]
    assert claims(*looks) == ["noncompliant"] * 3 + ["compliant"] * 2


def test_without_a_window_at_once() -> None:
    assert claims((0, [policy()]), stable=0.0) == ["compliant"]


@pytest.mark.parametrize("state", ["NonCompliant", "Pending", "", "compliant", None])
def test_any_other_state_is_noncompliant_and_restarts_the_window(state: str | None) -> None:
    looks = [(0.0, [policy()]), (200.0, [policy(compliant=state)]), (201.0, [policy()])]
    late = [(320.9, [policy()]), (321.0, [policy()])]
    assert claims(*looks, *late) == [*["noncompliant"] * 4, "compliant"]


@pytest.mark.parametrize(
    "newcomer",
    [policy(uid="u2"), policy(generation=2), policy("default.mig-2g", uid="u2")],
    ids=["recreated", "edited", "another"],
)
def test_a_replaced_policy_restarts_the_window(newcomer: dict[str, Any]) -> None:
    looks = [(0.0, [policy()]), (120.0, [policy()]), (150.0, [newcomer]), (270.0, [newcomer])]
    assert claims(*looks) == ["noncompliant", "compliant", "noncompliant", "compliant"]


def test_every_policy_has_its_own_window() -> None:
    first, second = policy("a"), policy("b")
    looks = [(0.0, [first]), (100.0, [first, second]), (120.0, [first, second])]
    assert claims(*looks, (220.0, [first, second]))[2:] == ["noncompliant", "compliant"]
    # Where the newcomer goes away again, the other has been compliant all the time.
    assert claims(*looks, (121.0, [first]))[-1] == "compliant"


def test_a_restart_goes_on_with_a_compliant_claim_about_the_same_policies() -> None:
    seen = policy_compliance([policy("a"), policy("b")])
    state = resume(seen, 0.0, published="compliant", digest=seen.digest, stable_seconds=STABLE)
    assert step(state, seen, 0.0, stable_seconds=STABLE)[1] == "compliant"
    worse = policy_compliance([policy("a"), policy("b", "NonCompliant")])
    state = resume(worse, 0.0, published="compliant", digest=worse.digest, stable_seconds=STABLE)
    assert step(state, worse, 0.0, stable_seconds=STABLE)[1] == "noncompliant"


@pytest.mark.parametrize(
    ("published", "before"),
    [
        ("noncompliant", policy()),
        ("empty", policy()),
        ("", policy()),
        ("compliant", policy(uid="u0")),
        ("compliant", policy(generation=7)),
        ("compliant", policy("other")),
    ],
)
def test_a_restart_begins_anew_with_any_other_claim(published: str, before: dict[str, Any]) -> None:
    seen = policy_compliance([policy()])
    state = resume(
        seen,
        0.0,
        published=published,
        digest=policy_compliance([before]).digest,
        stable_seconds=STABLE,
    )
    assert state == StableWindow()


def test_the_digest_knows_the_policies_and_not_their_order_or_state() -> None:
    there = policy_compliance([policy("a"), policy("b", "NonCompliant")])
    back = policy_compliance([policy("b"), policy("a")])
    assert there.digest == back.digest
    assert there.digest != policy_compliance([policy("a")]).digest


versions = st.builds(
    PolicyVersion, st.sampled_from("ab"), st.sampled_from(["u1", "u2"]), st.integers(1, 2)
)


@st.composite
def verdicts(draw: st.DrawFn) -> PolicyCompliance:
    policies = draw(st.frozensets(versions, max_size=2))
    broken = draw(st.frozensets(versions, max_size=1))
    return PolicyCompliance(policies, policies - broken)


looks = st.lists(st.tuples(st.integers(1, 90), verdicts()), max_size=12)


@given(looks=looks, stable=st.integers(0, 200))
def test_the_claim_follows_from_the_history_alone(
    looks: list[tuple[int, PolicyCompliance]], stable: int
) -> None:
    now, state = 0, StableWindow()
    history: list[tuple[int, PolicyCompliance]] = []
    for gap, seen in looks:
        now += gap
        history.append((now, seen))
        state, value = step(state, seen, float(now), stable_seconds=float(stable))
        assert value == expected(history, stable)


def expected(history: list[tuple[int, PolicyCompliance]], stable: int) -> ClaimValue:
    _, last = history[-1]
    if not last.policies:
        return "empty"
    steady = all(steady_for(history, item) >= stable for item in last.policies)
    return "compliant" if steady else "noncompliant"


def steady_for(history: list[tuple[int, PolicyCompliance]], item: PolicyVersion) -> int:
    """Seconds for which a policy has been compliant in every look, -1 where it is not now."""
    now, since = history[-1][0], None
    for moment, seen in reversed(history):
        if item not in seen.compliant:
            break
        since = moment
    return -1 if since is None else now - since
