"""Conditions: the time of a transition moves only with the status."""

from dsf.api.conditions import Condition, find, merged

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_a_new_condition_has_the_time_of_now() -> None:
    (condition,) = merged([], [Condition("Ready", "True", "Synced")], now=EARLY, generation=3)
    assert condition["lastTransitionTime"] == EARLY
    assert condition["observedGeneration"] == 3


def test_an_unchanged_status_keeps_its_time() -> None:
    before = merged([], [Condition("Ready", "False", "NoAnswer", "a")], now=EARLY)
    (after,) = merged(before, [Condition("Ready", "False", "NotJson", "b")], now=LATE)
    assert (after["reason"], after["lastTransitionTime"]) == ("NotJson", EARLY)


def test_a_changed_status_gets_a_new_time() -> None:
    before = merged([], [Condition("Ready", "False", "NoAnswer")], now=EARLY)
    (after,) = merged(before, [Condition("Ready", "True", "Synced")], now=LATE)
    assert after["lastTransitionTime"] == LATE


def test_conditions_of_others_stay() -> None:
    theirs = {"type": "Scheduled", "status": "True", "reason": "X", "message": ""}
    result = merged([theirs], [Condition("Ready", "True", "Synced")], now=EARLY)
    assert find(result, "Scheduled") == theirs
