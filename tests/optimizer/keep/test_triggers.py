"""When to plan: what has happened, what a schedule says, and when to look again."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.keep.move_budgets import PastChange, fewest, moves_left
from optimizer.keep.score_memory import ScoreMemory
from optimizer.keep.triggers import Due, Look, Watched, due
from optimizer.wire.keeping import Keeping, MoveBudget
from tests.optimizer.keep.kept_fleet import START

NOON = START + timedelta(hours=12)
SOON = NOON + timedelta(seconds=30)
SEEN = Watched(
    clusters={"a": frozenset(), "b": frozenset({"x:NoSelect"})},
    lost=frozenset(),
    workloads=frozenset({"w"}),
    policies=frozenset({"p"}),
)
NIGHT: dict[str, Any] = {
    "schedule": "0 22 * * *",
    "duration": "8h",
    "preference": {"addonPlacementScore": "power"},
}


def _memory(value: float) -> ScoreMemory:
    return ScoreMemory(0).observed({"s": ScoreMatrix.of({("a", "w", ""): value})}, NOON)


def _due(
    rules: dict[str, Any],
    watched: Watched = SEEN,
    *,
    at: datetime = SOON,
    score: float = 50.0,
    again: datetime | None = None,
) -> Due:
    last = Look(NOON, SEEN, _memory(50.0), again)
    return due(Keeping.model_validate(rules), last, watched, _memory(score), at)


def test_the_first_look_plans() -> None:
    assert due(Keeping(), None, SEEN, _memory(1), NOON) == Due(("FirstLook",), SOON)


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({}, ()),
        ({"clusters": {**SEEN.clusters, "c": frozenset()}}, ("ClusterAdded",)),
        ({"clusters": {"a": frozenset()}}, ("ClusterLost",)),
        ({"lost": frozenset({"a"})}, ("ClusterLost",)),
        ({"clusters": {**SEEN.clusters, "a": frozenset({"y"})}}, ("ClusterTainted",)),
        ({"clusters": {**SEEN.clusters, "b": frozenset()}}, ("ClusterTainted",)),
        ({"workloads": frozenset({"w", "v"})}, ("WorkloadAdded",)),
        ({"workloads": frozenset()}, ("WorkloadLost",)),
        ({"policies": frozenset({"p", "q"})}, ("PolicyAdded",)),
        ({"policies": frozenset()}, ("PolicyLost",)),
        ({"must_move": frozenset({"w"})}, ("MustMove",)),
        ({"generation": 2}, ("SpecChanged",)),
        ({"plan_requested_at": "now"}, ("PlanRequested",)),
    ],
)
def test_what_happened_is_a_reason(changed: dict[str, Any], reasons: tuple[str, ...]) -> None:
    assert _due({}, replace(SEEN, **changed)).reasons == reasons


def test_objects_that_no_trigger_names_are_no_reason_but_the_annotation_always_is() -> None:
    changed = replace(SEEN, workloads=frozenset(), policies=frozenset(), plan_requested_at="x")
    rules = {"triggers": {"objects": ["PolicyLost"]}}
    assert _due(rules, changed).reasons == ("PlanRequested", "PolicyLost")
    assert _due({"triggers": {"objects": []}}, changed).reasons == ("PlanRequested",)


@pytest.mark.parametrize(
    ("threshold", "score", "due_now"),
    [(5, 54, False), (5, 55, True), (5, 45, True), (0, 50, False), (0, 51, True)],
)
def test_a_score_has_to_change_by_the_threshold(
    threshold: float, score: float, due_now: bool
) -> None:
    found = _due({"triggers": {"scoreChange": threshold}}, score=score)
    assert found.reasons == (("ScoreChanged",) if due_now else ())


@pytest.mark.parametrize(
    ("must_move", "place", "reasons"),
    [("w", "b", ("ScoreChanged",)), ("w", "a", ()), ("", "b", ())],
    ids=["a first score", "an older score", "all run"],
)
def test_a_first_score_is_a_reason_for_what_runs_nowhere(
    must_move: str, place: str, reasons: tuple[str, ...]
) -> None:
    watched = replace(SEEN, must_move=frozenset(must_move))
    scores = {"s": ScoreMatrix.of({("a", "w", ""): 50.0, (place, "w", ""): 50.0})}
    before = ScoreMemory(300).observed({"s": ScoreMatrix.of({("a", "w", ""): 50.0})}, NOON)
    found = due(
        Keeping(), Look(NOON, watched, before), watched, before.observed(scores, SOON), SOON
    )
    assert found.reasons == reasons


def test_a_schedule_is_a_reason_once_and_the_next_look() -> None:
    rules = {"triggers": {"schedule": "10 12 * * *"}}
    start = NOON + timedelta(minutes=10)
    assert _due(rules, at=start - timedelta(seconds=20)) == Due((), start)
    assert _due(rules, at=start).reasons == ("Scheduled",)
    late = Look(start, SEEN, _memory(50.0))
    after = due(Keeping.model_validate(rules), late, SEEN, _memory(50.0), start + timedelta(1))
    assert after.reasons == ("Scheduled",)
    assert (
        due(
            Keeping.model_validate(rules), late, SEEN, _memory(50.0), start + timedelta(hours=1)
        ).reasons
        == ()
    )


def test_the_end_of_what_was_waited_for_is_a_reason() -> None:
    again = NOON + timedelta(seconds=45)
    assert _due({}, again=again) == Due((), again)
    assert _due({}, again=again, at=again).reasons == ("HoldEnded",)


@pytest.mark.parametrize(("window", "seconds"), [(0, 5), (100, 10), (300, 30), (86_400, 60)])
def test_scores_are_read_ten_times_in_a_window(window: int, seconds: int) -> None:
    rules = {"hysteresis": {"stabilizationWindowSeconds": window}}
    assert _due(rules, at=NOON).next_look == NOON + timedelta(seconds=seconds)


def test_objectives_change_when_a_window_opens_and_when_it_ends() -> None:
    rules = {"schedules": [NIGHT]}
    night, day = START + timedelta(hours=22), START + timedelta(hours=30)
    assert _due(rules, at=night - timedelta(seconds=10)) == Due((), night)
    assert _due(rules, at=night).reasons == ("ObjectivesChanged",)
    inside = Look(night, SEEN, _memory(50.0))
    kept, memory = Keeping.model_validate(rules), _memory(50.0)
    assert due(kept, inside, SEEN, memory, day - timedelta(seconds=1)) == Due((), day)
    assert due(kept, inside, SEEN, memory, day).reasons == ("ObjectivesChanged",)


def test_the_first_open_schedule_says_which_scores_count() -> None:
    always = {
        "schedule": "0 0 * * *",
        "duration": "24h",
        "preference": {"addonPlacementScore": "load"},
        "objectives": [{"addonPlacementScore": "cost"}],
    }

    def active(at: datetime, *schedules: dict[str, Any]) -> list[str]:
        found = Keeping.model_validate({"schedules": schedules}).open_schedule(at)
        return (
            [score.score_name for score in (found.preference, *found.objectives)] if found else []
        )

    night = START + timedelta(hours=23)
    assert active(NOON) == active(NOON, NIGHT) == []
    assert active(night, NIGHT, always) == ["power"]
    assert active(NOON, NIGHT, always) == ["load", "cost"]


@pytest.mark.parametrize("seconds", [-3600, 3600 * 24 * 400])
def test_a_clock_that_jumped_plans_at_most_once_more(seconds: int) -> None:
    now = NOON + timedelta(seconds=seconds)
    rules = {"schedules": [NIGHT], "triggers": {"schedule": "@daily"}}
    found = _due(rules, at=now)
    assert now < found.next_look <= now + timedelta(minutes=1)
    after = Look(now, SEEN, _memory(50.0))
    memory = _memory(50.0)
    assert due(Keeping.model_validate(rules), after, SEEN, memory, now).reasons == ()


HISTORY = [
    PastChange(NOON - timedelta(minutes=70), {"BetterScore": 5}),
    PastChange(NOON - timedelta(minutes=50), {"BetterScore": 2, "ClusterLost": 4}),
    PastChange(NOON - timedelta(minutes=10), {"ClusterLost": 1}),
]


@pytest.mark.parametrize(
    ("budget", "left", "minutes"),
    [
        ({"moves": 3}, 1, 10),
        ({"moves": 1}, 0, 10),
        ({"moves": 9, "per": "Day"}, 2, 23 * 60 - 10),
        ({"moves": 9, "reasons": ["ClusterLost"]}, 4, 10),
        ({"moves": 9, "reasons": ["BetterScore", "ClusterLost"]}, 2, 10),
        ({"moves": "10%"}, 3, 10),
        ({"moves": 0, "reasons": ["NotEligible"]}, 0, None),
        ({"moves": 0, "schedule": "0 11 * * *", "duration": "65m"}, 0, 5),
    ],
)
def test_a_budget_leaves_what_its_period_does_not_have(
    budget: dict[str, Any], left: int, minutes: int | None
) -> None:
    (found,) = moves_left([MoveBudget.model_validate(budget)], HISTORY, 45, NOON)
    assert found.moves == left
    assert found.more_at == (None if minutes is None else NOON + timedelta(minutes=minutes))


def test_of_several_budgets_the_one_that_leaves_least_counts() -> None:
    given = [{"moves": 3}, {"moves": 8, "per": "Day"}, {"moves": 0, "reasons": ["ClusterLost"]}]
    found = moves_left([MoveBudget.model_validate(item) for item in given], HISTORY, 45, NOON)
    assert fewest(found, "BetterScore") == 1
    assert fewest(found, "ClusterLost") == 0
    assert fewest(found, "NotEligible") is None
