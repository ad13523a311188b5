"""What is taken, held back or made smaller: budgets, freezes, lost clusters, missing scores."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.domain.fleet import CandidatePolicy, Supply
from optimizer.keep.decision import Hold, Take
from optimizer.keep.move_budgets import PastChange
from optimizer.wire.keeping import Keeping
from tests.optimizer.keep.kept_fleet import (
    START,
    KeptFleet,
    Scores,
    cluster,
    fleet,
    matrix,
    workload,
)

NOW = START + timedelta(hours=12)
PLAIN: dict[str, Any] = {"hysteresis": {"stabilizationWindowSeconds": 0, "variationMultiple": 0}}
FREEZE = {"schedule": "0 11 * * *", "duration": "2h"}
A_DAY_AGO = NOW - timedelta(days=1)


def _kept(*workloads: Any, clusters: str = "abc", cpu: float = 4.0, **rules: Any) -> KeptFleet:
    own = fleet(tuple(cluster(name, cpu=cpu) for name in clusters), *workloads)
    return KeptFleet(own, Keeping.model_validate({**PLAIN, **rules}), now=NOW)


def _scores(**of_apps: str) -> Scores:
    """Return scores such as `w="50 70"`: of app w on clusters a and b; `-` is none."""
    return {
        (app, "abcdef"[at]): float(text)
        for app, row in of_apps.items()
        for at, text in enumerate(row.split())
        if text != "-"
    }


def _places(kept: KeptFleet) -> dict[str, tuple[str, ...]]:
    return {item.name: item.current for item in kept.fleet.workloads}


@pytest.mark.parametrize(
    ("scores", "hysteresis", "moves"),
    [
        ("50 50", {}, False),
        ("50 60", {}, False),  # a gain has to exceed the margin
        ("50 61", {}, True),
        ("50 50", {"leastGain": 0}, False),  # ties stay
        ("50 51", {"leastGain": 0}, True),
        ("50 61", {"leastGain": 20}, False),
        ("50 64", {"leastGainPercent": 30}, False),
        ("50 66", {"leastGainPercent": 30}, True),
        ("-5 -3", {}, False),
    ],
)
def test_a_move_has_to_gain_its_margin(
    scores: str, hysteresis: dict[str, Any], moves: bool
) -> None:
    kept = _kept(workload("w", "a"), hysteresis={**PLAIN["hysteresis"], **hysteresis})
    verdict = kept.read(_scores(w=scores))
    assert isinstance(verdict, Take)
    assert _places(kept) == {"w": ("b",) if moves else ("a",)}
    assert dict(verdict.moves) == ({"BetterScore": 1} if moves else {})


def test_a_workloads_own_move_cost_is_a_margin_too() -> None:
    kept = _kept(workload("w", "a", move_cost=30.0))
    kept.read(_scores(w="50 79"))
    assert _places(kept) == {"w": ("a",)}
    kept.read(_scores(w="50 81"), force=True)
    assert _places(kept) == {"w": ("b",)}


@pytest.mark.parametrize(
    ("rules", "history", "reason", "minutes"),
    [
        ({"freezes": [FREEZE]}, [], "Frozen", 60),
        ({"budgets": [{"moves": 0}]}, [], "BudgetSpent", None),
        (
            {"budgets": [{"moves": 1}]},
            [PastChange(NOW - timedelta(minutes=50), {"BetterScore": 1})],
            "BudgetSpent",
            10,
        ),
        (
            {"budgets": [{"moves": "1%", "per": "Day"}]},
            [PastChange(NOW - timedelta(hours=23), {"BetterScore": 1})],
            "BudgetSpent",
            60,
        ),
        (
            {"hysteresis": {**PLAIN["hysteresis"], "stabilizationWindowSeconds": 600}},
            [PastChange(NOW - timedelta(minutes=4), {"ClusterLost": 1})],
            "Stabilizing",
            6,
        ),
        ({"hold": {"until": "2026-03-01T13:00:00Z", "reason": "games"}}, [], "Held", 60),
        ({}, [PastChange(NOW - timedelta(hours=1), rolled_back=True)], "RolledBack", 23 * 60),
    ],
)
def test_what_is_on_offer_is_held_back(
    rules: dict[str, Any], history: list[PastChange], reason: str, minutes: int | None
) -> None:
    kept = _kept(workload("w", "a"), workload("x", "b"), **rules)
    kept.history = history
    scores = _scores(w="50 70", x="50 50")
    for seconds in range(720, -1, -30):  # averages of a window are known
        kept.memory = kept.memory.observed(
            matrix(kept.fleet, scores), NOW - timedelta(seconds=seconds)
        )
    verdict = kept.read(scores)
    assert isinstance(verdict, Hold)
    assert verdict.reason == reason
    assert verdict.until == (minutes and NOW + timedelta(minutes=minutes))
    assert (verdict.gain, dict(verdict.moves)) == (20, {"BetterScore": 1})
    assert "on offer: 20 for 1 move" in verdict.message
    assert _places(kept) == {"w": ("a",), "x": ("b",)}


@pytest.mark.parametrize(
    ("rules", "history"),
    [
        ({"freezes": [{**FREEZE, "schedule": "0 13 * * *"}]}, []),
        ({"budgets": [{"moves": 0, **FREEZE, "schedule": "0 13 * * *"}]}, []),
        ({"budgets": [{"moves": 0, "reasons": ["ClusterLost"]}]}, []),
        ({"budgets": [{"moves": 1}]}, [PastChange(A_DAY_AGO, {"BetterScore": 9})]),
        ({}, [PastChange(A_DAY_AGO - timedelta(minutes=1), rolled_back=True)]),
        ({}, [PastChange(NOW + timedelta(days=400), rolled_back=True)]),  # the clock went back
    ],
)
def test_what_does_not_count_now_holds_nothing_back(
    rules: dict[str, Any], history: list[PastChange]
) -> None:
    kept = _kept(workload("w", "a"), **rules)
    kept.history = history
    kept.read(_scores(w="50 70"))
    assert _places(kept) == {"w": ("b",)}


def test_a_budget_takes_the_best_moves_that_it_allows() -> None:
    names = "uvwx"
    kept = _kept(*(workload(name, "a") for name in names), budgets=[{"moves": 2}])
    kept.read(_scores(u="50 65", v="50 90", w="50 62", x="50 80"))
    assert _places(kept) == {"u": ("a",), "v": ("b",), "w": ("a",), "x": ("b",)}
    verdict = kept.verdicts[-1][1]
    assert isinstance(verdict, Take)
    assert dict(verdict.moves) == {"BetterScore": 2}
    assert verdict.rest is not None
    assert (verdict.rest.reason, verdict.rest.gain) == ("BudgetSpent", 97)
    assert verdict.rest.until == NOW + timedelta(hours=1)
    assert kept.read(_scores(u="50 65", v="50 90", w="50 62", x="50 80")) is None
    kept.now += timedelta(hours=1)
    kept.read(_scores(u="50 65", v="50 90", w="50 62", x="50 80"))
    assert _places(kept) == dict.fromkeys(names, ("b",))


@pytest.mark.parametrize("rules", [{"freezes": [FREEZE]}, {"budgets": [{"moves": 0}]}])
def test_a_lost_cluster_and_new_workloads_are_placed_whatever_is_frozen(
    rules: dict[str, Any],
) -> None:
    lost = workload("lost", "c", unselectable=("c",))
    kept = _kept(lost, workload("new"), workload("w", "a"), **rules)
    verdict = kept.read(_scores(lost="50 40 90", new="10 20", w="50 90"))
    assert isinstance(verdict, Take)
    assert dict(verdict.moves) == {"ClusterLost": 1}
    assert _places(kept) == {"lost": ("a",), "new": ("b",), "w": ("a",)}


def test_a_replica_more_starts_in_a_freeze() -> None:
    kept = _kept(workload("w", "a", replicas=2), workload("x", "a"), freezes=[FREEZE])
    kept.read(_scores(w="50 40 60", x="50 90"))
    assert _places(kept) == {"w": ("a", "c"), "x": ("a",)}


def test_a_lost_cluster_has_a_budget_of_its_own() -> None:
    budget = {"moves": 1, "reasons": ["ClusterLost"]}
    lost = [workload(name, "c", unselectable=("c",)) for name in "uv"]
    kept = _kept(*lost, workload("w", "a"), budgets=[budget])
    kept.read(_scores(u="50 40 90", v="60 40 90", w="50 90"))
    assert _places(kept) == {"u": (), "v": ("a",), "w": ("b",)}


def test_a_cluster_that_a_constraint_forbids_is_left_in_a_freeze() -> None:
    kept = _kept(workload("w", "a", excluded_clusters=("a",)), freezes=[FREEZE])
    verdict = kept.read(_scores(w="90 10"))
    assert isinstance(verdict, Take)
    assert dict(verdict.moves) == {"NotEligible": 1}


@pytest.mark.parametrize("missing", [None, 0.0, 90.0])
@pytest.mark.parametrize("now", ["- 90", "- -"])
def test_a_missing_score_moves_nothing(now: str, missing: float | None) -> None:
    kept = _kept(workload("w", "a"))
    kept.missing = missing
    kept.read(_scores(w="50 50"))
    kept.read(_scores(w=now.replace("90", "55")), force=True)
    assert _places(kept) == {"w": ("a",)}


def test_after_a_restart_a_missing_score_still_moves_nothing() -> None:
    kept = _kept(workload("w", "a"))
    kept.read(_scores(w="- 90"))
    assert _places(kept) == {"w": ("a",)}


def test_what_runs_nowhere_starts_where_a_missing_score_has_a_value() -> None:
    kept = _kept(workload("w"))
    kept.missing = 5.0
    kept.read(_scores(w="- 3"))
    assert _places(kept) == {"w": ("a",)}


def test_a_last_score_attracts_nobody_else() -> None:
    kept = _kept(workload("w", "a"), workload("new", app="w"))
    kept.read(_scores(w="90 20"))
    kept.fleet = replace(kept.fleet, workloads=(workload("w", "a"), workload("new", app="w")))
    kept.read(_scores(w="- 20"), force=True)
    assert _places(kept) == {"w": ("a",), "new": ("b",)}


def test_scores_below_the_minimum_move_only_what_would_gain_the_margin() -> None:
    kept = _kept(workload("w", "a", minimum_score=50.0))
    kept.read(_scores(w="47 52"))
    assert _places(kept) == {"w": ("a",)}
    kept.read(_scores(w="30 52"), force=True)
    assert _places(kept) == {"w": ("b",)}


def test_a_place_attracts_once_it_was_observed_for_a_window() -> None:
    rules = {"hysteresis": {"stabilizationWindowSeconds": 300}, "triggers": {"scoreChange": 0}}
    kept = _kept(workload("w", "a"), **rules)
    kept.run(lambda at: _scores(w="50 50" if at < 43_800 else "50 50 90"), 1_500)
    ((at, _, places),) = kept.moved
    assert places == ("c",)
    assert at == 43_800 + 300


def _gpus(name: str, current: str) -> Any:
    candidates = tuple(
        CandidatePolicy(device, (Supply("gpu", device, amount),), current=device == current)
        for device, amount in (("all", 1.0), ("half", 2.0))
    )
    return replace(cluster(name, cpu=0, policies=candidates), base=())


@pytest.mark.parametrize(("half", "policy"), [(50, "all"), (61, "all"), (80, "half")])
def test_a_change_of_policy_has_to_gain_the_margins_of_all_that_runs_there(
    half: float, policy: str
) -> None:
    own = fleet((_gpus("a", "all"),), workload("w", "a", kind="gpu"))
    kept = KeptFleet(own, Keeping.model_validate(PLAIN), now=NOW)
    kept.read({("w", "a", "all"): 60.0, ("w", "a", "half"): half})
    (found,) = [item.policy for item in kept.fleet.clusters[0].candidates if item.current]
    assert found == policy


ROWS = st.lists(st.lists(st.integers(0, 60), min_size=3, max_size=3), min_size=2, max_size=4)


@given(ROWS, st.integers(0, 3), st.integers(1, 4), st.integers(0, 15))
def test_what_moves_is_the_best_choice_of_moves_within_the_budget(
    rows: list[list[int]], most: int, room: int, margin: int
) -> None:
    """Compare with every assignment: the sum of scores less a margin for each move."""
    names = [f"w{number}" for number in range(len(rows))]
    start = [number % 3 for number in range(len(rows))]
    own = [workload(name, "abc"[at]) for name, at in zip(names, start, strict=True)]
    rules = {"hysteresis": {**PLAIN["hysteresis"], "leastGain": margin}}
    kept = _kept(*own, cpu=float(room + 1), budgets=[{"moves": most}], **rules)
    kept.read({(n, "abc"[at]): float(v) for n, r in zip(names, rows, strict=True)
               for at, v in enumerate(r)})  # fmt: skip

    def worth(places: tuple[int, ...]) -> float | None:
        moves = sum(one != other for one, other in zip(places, start, strict=True))
        if moves > most or any(places.count(at) > room + 1 for at in range(3)):
            return None
        total = sum(row[at] for row, at in zip(rows, places, strict=True))
        return total - moves * (margin + 0.01)

    best = max(v for p in product(range(3), repeat=len(rows)) if (v := worth(p)) is not None)
    found = tuple("abc".index(_places(kept)[name][0]) for name in names)
    assert worth(found) == pytest.approx(best)
