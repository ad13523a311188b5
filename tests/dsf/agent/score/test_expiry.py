"""`onFailure` against the clock: a scorer that was good once and then fails."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.publish.placement_score import RoundReport, placement_score, status_patch
from dsf.agent.score.expiry import EXPIRE, LEAD, decide_expiry, policy_in_force
from dsf.agent.score.result_rules import AddOnPlacementScoreItem, RoundScores
from dsf.api.conditions import find
from dsf.api.crd.score_rules import OnFailure
from dsf.api.times import read_time
from dsf.kube import json_merge_patch

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
VALID = timedelta(seconds=90)
GOOD = RoundReport.success(
    RoundScores(entries=(AddOnPlacementScoreItem("a", 1), AddOnPlacementScoreItem("b", -2)))
)
BAD = RoundReport.failed(Failure("scoring", "ServerError", "answered 500"))
HOLD = OnFailure(policy="Hold", hold_seconds=600)
VALUE = OnFailure(policy="Value", value=-7)


@dataclass
class Kept:
    """An AddOnPlacementScore to which reports are written; `seconds` count from the start."""

    rule: OnFailure = EXPIRE
    obj: dict[str, Any] = field(default_factory=lambda: placement_score("cluster1", "s"))
    writes: int = 0

    def told(self, what: RoundReport, seconds: float) -> "Kept":
        self.obj["metadata"]["resourceVersion"] = "1"
        patch = status_patch(
            self.obj,
            what,
            now=START + timedelta(seconds=seconds),
            valid_for=VALID,
            on_failure=self.rule,
        )
        if patch is not None:
            self.writes += 1
            self.obj = dict(json_merge_patch.merged(self.obj, patch))
        return self

    @property
    def values(self) -> list[int]:
        return [entry["value"] for entry in self.obj["status"].get("scores", [])]

    @property
    def valid_for(self) -> float:
        """Seconds from the start until which the scores are valid."""
        until = read_time(self.obj["status"].get("validUntil"))
        assert until
        return (until - START).total_seconds()

    @property
    def reason(self) -> str:
        return str((find(self.obj["status"]["conditions"], "Published") or {})["reason"])

    def again(self, seconds: float) -> float | None:
        now = START + timedelta(seconds=seconds)
        at = decide_expiry(self.obj["status"], self.rule, now=now, valid_for=VALID).again
        return None if at is None else (at - START).total_seconds()


def good(rule: OnFailure) -> Kept:
    return Kept(rule).told(GOOD, 0)


@pytest.mark.parametrize("rule", [EXPIRE, HOLD, VALUE])
@pytest.mark.parametrize("seconds", [0, 30, 84.9])
def test_until_they_expire_the_last_good_scores_stay(rule: OnFailure, seconds: float) -> None:
    obj = good(rule).told(BAD, seconds)
    assert (obj.values, obj.valid_for, obj.reason) == ([1, -2], 90, "Published")
    assert obj.again(seconds) == (90 - LEAD.total_seconds() if rule is HOLD else 90)


@pytest.mark.parametrize("seconds", [90, 90.5, 10_000])
def test_expire(seconds: float) -> None:
    obj = good(EXPIRE).told(BAD, seconds)
    assert (obj.values, obj.valid_for, obj.reason) == ([1, -2], 90, "Expired")
    assert obj.again(seconds) is None
    writes = obj.writes
    assert obj.told(BAD, seconds + 1000).writes == writes


@pytest.mark.parametrize("seconds", [85, 90, 400])
def test_hold_extends_the_validity_once(seconds: float) -> None:
    obj = good(HOLD).told(BAD, seconds)
    assert (obj.values, obj.valid_for, obj.reason) == ([1, -2], 690, "Held")
    writes = obj.writes
    assert obj.told(BAD, 689.9).valid_for == 690
    assert obj.writes == writes
    obj.told(BAD, 690)
    assert (obj.values, obj.valid_for, obj.reason) == ([1, -2], 690, "Expired")
    assert obj.told(BAD, 20_000).valid_for == 690
    assert obj.writes == writes + 1


def test_hold_of_scores_that_would_have_ended_meanwhile_is_over() -> None:
    obj = good(HOLD).told(BAD, 690)
    assert (obj.valid_for, obj.reason) == (90, "Expired")


@pytest.mark.parametrize(
    ("rule", "at_expiry", "at_the_end"),
    [(HOLD, "Hold", "Expire"), (VALUE, "Value", "Value"), (EXPIRE, "Expire", "Expire")],
)
def test_the_policy_in_force_begins_when_scores_expire(
    rule: OnFailure, at_expiry: str, at_the_end: str
) -> None:
    assert policy_in_force(rule, -0.1) is None
    assert (policy_in_force(rule, 0), policy_in_force(rule, 599.9)) == (at_expiry, at_expiry)
    assert policy_in_force(rule, 600) == at_the_end


def test_value_replaces_every_entry_and_is_renewed_by_the_clock() -> None:
    obj = good(VALUE).told(BAD, 90)
    assert (obj.values, obj.valid_for, obj.reason) == ([-7, -7], 180, "FallbackValue")
    assert obj.again(90) == 135
    writes = obj.writes
    assert obj.told(BAD, 134.9).writes == writes
    for passed in range(135, 3600, 45):
        obj.told(BAD, passed)
        assert (obj.values, obj.valid_for) == ([-7, -7], passed + 90)
    obj.told(GOOD, 3600)
    assert (obj.values, obj.valid_for, obj.reason) == ([1, -2], 3690, "Published")


@pytest.mark.parametrize("rule", [EXPIRE, HOLD, VALUE])
def test_where_no_round_ever_succeeded_there_is_nothing_to_keep(rule: OnFailure) -> None:
    obj = Kept(rule).told(BAD, 0)
    assert (obj.values, obj.reason) == ([], "NoScores")
    assert "validUntil" not in obj.obj["status"]
    assert obj.again(0) is None


@pytest.mark.parametrize(
    ("before", "after", "reason", "values", "until"),
    [
        (HOLD, EXPIRE, "Expired", [1, -2], 300),
        (HOLD, VALUE, "FallbackValue", [-7, -7], 390),
        (VALUE, EXPIRE, "Expired", [-7, -7], 180),
        (VALUE, HOLD, "Expired", [-7, -7], 180),
        (VALUE, OnFailure(policy="Value", value=5), "FallbackValue", [5, 5], 390),
        (EXPIRE, HOLD, "Expired", [1, -2], 90),
        (EXPIRE, VALUE, "FallbackValue", [-7, -7], 390),
    ],
)
def test_a_changed_rule_acts_at_the_next_look(
    before: OnFailure, after: OnFailure, reason: str, values: list[int], until: float
) -> None:
    obj = good(before).told(BAD, 90)
    obj.rule = after
    obj.told(BAD, 300)
    assert (obj.reason, obj.values, obj.valid_for) == (reason, values, until)


def test_replaced_scores_that_are_no_longer_to_be_end_at_once() -> None:
    obj = good(VALUE).told(BAD, 90)
    obj.rule = EXPIRE
    assert (obj.told(BAD, 100).valid_for, obj.reason) == (100, "Expired")


def test_a_clock_that_was_set_back_does_not_keep_scores_for_long() -> None:
    obj = good(EXPIRE).told(BAD, -86_400)
    assert obj.valid_for == -86_400 + 90


@pytest.mark.parametrize("until", [None, "tomorrow", "2026-01-01T12:00:00", 5])
def test_scores_whose_end_is_unknown_end_now(until: Any) -> None:
    obj = good(EXPIRE)
    obj.obj["status"]["validUntil"] = until
    assert (obj.told(BAD, 10).valid_for, obj.reason) == (10, "Expired")


RULES = st.sampled_from([EXPIRE, HOLD, VALUE, OnFailure(policy="Hold", hold_seconds=1)])


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 400), RULES), max_size=20))
def test_whatever_happens(script: list[tuple[bool, float, OnFailure]]) -> None:
    obj, now, last_good = Kept(), 0.0, -1e9
    for succeeded, passed, rule in script:
        now, obj.rule = now + passed, rule
        obj.told(GOOD if succeeded else BAD, now)
        last_good = now if succeeded else last_good
        writes = obj.writes
        obj.told(GOOD if succeeded else BAD, now)
        assert obj.writes == writes
        if not obj.values:
            continue
        fresh = obj.values == [1, -2]
        longest = 600 if any(r.policy == "Hold" for _, _, r in script) else 0
        if fresh and obj.valid_for > now:
            assert now < last_good + 90 + longest
        if not succeeded and rule is VALUE and now >= last_good + 90 + longest:
            assert obj.values == [-7, -7]
            assert obj.valid_for > now
        if not succeeded and rule is EXPIRE and now >= last_good + 90 + longest:
            assert obj.valid_for <= now
        again = obj.again(now)
        assert again is None or again > now - 1
