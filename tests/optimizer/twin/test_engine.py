"""Whole runs of small fleets, with the product's own parts inside, in virtual time."""

import subprocess
import sys
from typing import Any

import pytest

from optimizer.twin.engine import play
from optimizer.twin.fleet_objects import UnplayableScenario
from optimizer.twin.played import Played
from tests.optimizer.twin.fleets import scenario, signals

HOUR = 3600.0
NAIVE: dict[str, Any] = {"controller": "Naive", "naiveEvery": "5m"}
UNEQUAL = signals(
    {"type": "Constant", "least": 50},
    {"type": "Shift", "at": 0, "by": 20, "clusters": ["site-1"]},
    {"type": "Shift", "at": 0, "by": 10, "clusters": ["site-2"]},
)


def places(played: Played, time: float) -> dict[str, str]:
    return {stay.workload: stay.cluster for stay in played.stays if stay.begins <= time < stay.ends}


def at(played: Played, time: float) -> Any:
    return next(sample for sample in reversed(played.samples) if sample.at <= time)


def test_workloads_are_placed_where_their_scores_are_best() -> None:
    played = play(scenario(**UNEQUAL, **NAIVE))
    assert set(places(played, HOUR).values()) == {"site-1", "site-2"}
    assert played.moves == ()
    assert at(played, HOUR).value == pytest.approx(70 + 60)
    assert at(played, HOUR).unplaced == 0
    running = sum(stay.ends - stay.begins for stay in played.stays)
    assert played.unplaced_minutes * 60 == pytest.approx(2 * 2 * HOUR - running)
    assert played.value_hours == pytest.approx(130 * (2 - played.unplaced_minutes / 120), rel=0.01)


@pytest.mark.exhaustive
def test_a_run_is_the_same_in_every_process() -> None:
    fleet = scenario(**signals({"type": "Noise", "size": 20, "error": False}), **NAIVE)
    code = (
        "import sys; from optimizer.twin.engine import play;"
        "from optimizer.twin.scenario import Scenario;"
        "print(play(Scenario.model_validate_json(sys.stdin.read()), 7).model_dump_json())"
    )
    text = fleet.model_dump_json(by_alias=True)
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert Played.model_validate_json(runs[0]).moves
    assert play(fleet, 8).model_dump_json() != runs[0].strip()


def test_a_lasting_change_of_a_score_moves_a_workload() -> None:
    shift = {"type": "Shift", "at": "1h", "by": 40, "clusters": ["site-3"]}
    fields = signals(*UNEQUAL["scores"][0]["signals"], shift)
    (move,) = play(scenario(**fields, **NAIVE)).moves
    assert (move.source, move.target, move.reason) == ("site-2", "site-3", "BetterScore")
    assert HOUR < move.at < HOUR + 2 * 300 + 60


def test_static_places_once_and_each_workload_that_arrives() -> None:
    noisy = signals({"type": "Noise", "size": 20})
    groups = [{"name": "chat"}, {"name": "late", "arrives": "1h", "stays": "30m"}]
    played = play(scenario(**noisy, workloads=groups, controller="Static"))
    assert played.plans == 2
    first, late = ([s for s in played.stays if s.workload == name] for name in ("chat", "late"))
    assert first
    assert HOUR < late[0].begins < HOUR + 60
    assert late[-1].ends == pytest.approx(1.5 * HOUR, abs=5)


@pytest.mark.exhaustive
def test_a_lost_cluster_is_recovered_after_its_grace() -> None:
    lost = [{"type": "ClusterLost", "at": "30m", "until": "80m", "clusters": ["site-1"]}]
    played = play(scenario(**UNEQUAL, failures=lost, controller="Naive", naiveEvery="30s"))
    (loss,) = played.losses
    assert (loss.cluster, loss.at, loss.replicas) == ("site-1", 1800, 1)
    assert (loss.noticed, loss.due) == (1800 + 300, 1800 + 600)
    assert loss.noticed
    assert loss.recovered
    assert loss.noticed < loss.recovered <= loss.noticed + 60
    assert (played.moves[0].source, played.moves[0].reason) == ("site-1", "ClusterLost")
    assert at(played, 2000).unplaced == 1


def test_agents_that_are_stopped_let_scores_expire_and_nothing_moves() -> None:
    stopped = [{"type": "AgentStopped", "at": "30m"}]
    noisy = signals({"type": "Noise", "size": 20}, {"type": "Constant", "least": 10, "most": 50})
    kept = play(scenario(**noisy, failures=stopped, **NAIVE))
    assert kept.moves
    assert max(move.at for move in kept.moves) < 1800 + 3 * 300
    assert len(places(kept, 2 * HOUR - 1)) == 2


@pytest.mark.parametrize("failure", ["ScoringDown", "HubUnreachable"])
@pytest.mark.exhaustive
def test_what_cannot_be_reached_moves_nothing_until_it_is_back(failure: str) -> None:
    out = [{"type": failure, "at": "30m", "until": "75m"}]
    shift = {"type": "Shift", "at": "35m", "by": 40, "clusters": ["site-3"]}
    fields = signals(*UNEQUAL["scores"][0]["signals"], shift)
    played = play(scenario(**fields, failures=out, **NAIVE))
    assert played.moves[0].at > 75 * 60
    assert set(places(played, 2 * HOUR - 1).values()) == {"site-1", "site-3"}


def test_policies_are_enforced_before_workloads_run() -> None:
    policies = [
        {"name": "whole", "supplies": "gpu/all=1"},
        {"name": "half", "supplies": "gpu/half=2"},
    ]
    groups = [{"name": "site", "policies": policies}]
    played = play(scenario(clusters=groups, workloads=[{"name": "chat"}], **NAIVE))
    (stay,) = played.stays
    assert stay.begins > 300 + 120  # the first round, then the watcher's stable window


def test_a_stepwise_rollout_starts_before_it_stops() -> None:
    shift = {"type": "Shift", "at": "30m", "by": 40, "clusters": ["site-3"]}
    fields = signals(*UNEQUAL["scores"][0]["signals"], shift)
    spec = {"preference": {"addonPlacementScore": "fit"}, "rollout": "Stepwise"}
    played = play(scenario(**fields, optimization=spec, **NAIVE))
    (move,) = played.moves
    moved = [stay for stay in played.stays if stay.workload == move.workload]
    assert moved[0].ends > moved[1].begins


def test_a_rate_is_summed_over_the_hours_of_all_that_run() -> None:
    fit = {"name": "fit", "signals": [{"type": "Constant", "least": 50}]}
    power = {"name": "power", "signals": [{"type": "Constant", "least": 2}], "total": "kWh"}
    played = play(scenario(scores=[fit, power], **NAIVE))
    hours = sum(stay.ends - stay.begins for stay in played.stays) / HOUR
    assert played.totals == {"power": pytest.approx(2 * hours)}


@pytest.mark.parametrize(
    ("optimization", "told"),
    [
        ({"preference": {"addonPlacementScore": "fat"}}, "has no score fat"),
        ({"preference": {}}, "addonPlacementScore"),
        ({"preference": {"addonPlacementScore": "fit"}, "hysterisis": {}}, "hysterisis"),
    ],
)
def test_an_optimization_that_is_none_is_refused(optimization: Any, told: str) -> None:
    with pytest.raises(UnplayableScenario, match=told):
        play(scenario(optimization=optimization, **NAIVE))


LATER: dict[str, Any] = {"workloads": [{"name": "chat", "count": 2, "arrives": "15m"}]}
"""Workloads that come when all scores are there: what is placed before that may move for better."""


def test_a_placement_optimization_keeps_the_fleet_placed() -> None:
    shift = {"type": "Shift", "at": "1h", "by": 40, "clusters": ["site-3"]}
    fields = signals(*UNEQUAL["scores"][0]["signals"], shift)
    played = play(scenario(**fields, **LATER))
    (move,) = played.moves
    assert (move.source, move.target, move.reason) == ("site-2", "site-3", "BetterScore")
    assert HOUR < move.at < HOUR + 3 * 300


def test_a_kept_fleet_moves_for_no_noise_and_no_scores_that_are_gone() -> None:
    out = [{"type": "AgentStopped", "at": "2h"}]
    noisy = signals(*UNEQUAL["scores"][0]["signals"], {"type": "Noise", "size": 5})
    spec = {
        "preference": {"addonPlacementScore": "fit"},
        "hysteresis": {"stabilizationWindowSeconds": 3000},
    }
    played = play(scenario(**noisy, **LATER, failures=out, duration="4h", optimization=spec))
    assert played.moves == ()
    assert len(places(played, 4 * HOUR - 1)) == 2


def test_a_kept_fleet_recovers_from_a_lost_cluster_within_a_minute_after_the_grace() -> None:
    lost = [{"type": "ClusterLost", "at": "30m", "clusters": ["site-1"]}]
    (loss,) = play(scenario(**UNEQUAL, **LATER, failures=lost)).losses
    assert loss.due
    assert loss.recovered
    assert loss.due <= loss.recovered <= loss.due + 60
