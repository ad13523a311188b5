"""Hindsight's best, where it can be computed by hand."""

from typing import Any

import pytest

from optimizer.twin.engine import play
from optimizer.twin.evaluation.hindsight import (
    PeriodBudget,
    best_moments,
    best_within_budgets,
    moments_of,
)
from tests.optimizer.twin.fleets import scenario, signals

SHIFTED = signals(
    {"type": "Constant", "least": 50},
    {"type": "Shift", "at": 0, "by": 10, "clusters": ["site-1", "site-2"]},
    {"type": "Shift", "at": "1h", "by": -40, "clusters": ["site-1", "site-2"]},
    {"type": "Noise", "size": 5},
)
"""Two sites are worth 60 for an hour and then 20; the third one 50."""


def test_hindsight_knows_the_truth_and_every_moment() -> None:
    step, moments = moments_of(scenario(**SHIFTED), 1)
    best = best_moments(moments)
    assert step == 300
    assert [(one.begins, one.seconds) for one in best] == [(0, 3600), (3600, 3600)]
    assert [one.value for one in best] == pytest.approx([60 + 60, 50 + 20])


@pytest.mark.parametrize(("moves", "most"), [(0, 110 + 70), (1, 120 + 70), (9, 120 + 70)])
def test_no_plans_that_keep_the_budget_are_worth_more(moves: int, most: float) -> None:
    _, moments = moments_of(scenario(**SHIFTED), 1)
    bound = best_within_budgets(moments, [PeriodBudget(86_400, moves)])
    assert bound == pytest.approx(most)


def test_each_period_has_its_budget() -> None:
    """Three changes of the best place in three hours, and one move in each hour."""
    waves = [
        {"type": "Shift", "at": f"{hour}h", "until": f"{hour + 1}h", "by": 30, "clusters": [site]}
        for hour, site in enumerate(["site-1", "site-2", "site-1"])
    ]
    fleet = scenario(
        duration="3h",
        workloads=[{"name": "chat"}],
        **signals({"type": "Constant", "least": 50}, *waves),
    )
    _, moments = moments_of(fleet, 1)
    hourly = best_within_budgets(moments, [PeriodBudget(3600, 1)])
    daily = best_within_budgets(moments, [PeriodBudget(3600, 1), PeriodBudget(86_400, 1)])
    assert (hourly, daily) == (pytest.approx(240), pytest.approx(210))


def test_nothing_runs_on_a_lost_cluster_and_not_before_it_arrives() -> None:
    fleet = scenario(
        workloads=[{"name": "chat", "arrives": "30m"}],
        failures=[{"type": "ClusterLost", "at": "1h", "until": "90m"}],
    )
    values = [(one.begins, one.value) for one in best_moments(moments_of(fleet, 1)[1])]
    assert values == [(0, 0), (1800, 50), (3600, 0), (5400, 50)]


def test_what_a_schedule_counts_is_what_it_is_worth() -> None:
    """From 01:00 on the score that counts is another one, whose best sites are others."""

    def score(name: str, *sites: str) -> dict[str, Any]:
        more = {"type": "Shift", "at": 0, "by": 10, "clusters": sites}
        return {"name": name, "signals": [{"type": "Constant", "least": 50}, more]}

    night = {"schedule": "0 1 * * *", "duration": "8h", "preference": {"addonPlacementScore": "kw"}}
    fleet = scenario(
        controller="Static",
        scores=[score("fit", "site-1", "site-2"), score("kw", "site-3")],
        optimization={"preference": {"addonPlacementScore": "fit"}, "schedules": [night]},
    )
    best = best_moments(moments_of(fleet, 1)[1])
    assert [(one.begins, one.value) for one in best] == [(0, 120), (3600, 110)]
    values = {one.at: one.value for one in play(fleet, 1).samples}
    assert (values[3300], values[3600]) == (120, 100)


@pytest.mark.exhaustive
def test_many_changes_are_averaged_over_steps_that_are_told() -> None:
    fleet = scenario(
        duration="2d",
        **signals({"type": "Diurnal", "height": 40}, {"type": "Constant", "least": 50}),
    )
    step, moments = moments_of(fleet, 1)
    assert step == 600
    assert len(moments) == 2 * 86_400 / step
    mean = sum(one.value_hours for one in best_moments(moments)) / 48
    assert mean == pytest.approx(2 * 50, rel=0.01)
