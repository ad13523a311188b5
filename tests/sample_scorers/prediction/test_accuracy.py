"""How good the prediction scorer is on the recordings: what docs/how-to/backtest.md says of it."""

import json

import pytest

from benchmarks.forecast.cases import CASES, Case
from benchmarks.forecast.shipped import measured, table
from dsf.cli.root import root
from sample_scorers.prediction.combination.app import PredictionSettings, create_app
from sample_scorers.prediction.combination.score import ScoreMeaning
from sample_scorers.scoring_service.testing import served
from tests.command_line import invoked
from tests.repository import ROOT

PAGE = (ROOT / "docs/how-to/backtest.md").read_text()
QUICK = {"aws-load-balancer", "aws-database"}
"""Recordings of one series: the others need more CPU than a quick test may."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case.name in QUICK else pytest.mark.exhaustive, id=case.name)
        for case in CASES
    ],
)
def test_it_beats_every_simple_method_and_its_intervals_hold(case: Case) -> None:
    found = measured(case, "all")
    assert [one.simple.method for one in found.comparisons if not (one.ratio or 2) < 1] == []
    (interval, *_) = found.intervals
    assert interval.level == 0.9
    assert 0.85 <= interval.coverage <= 0.95


@pytest.mark.exhaustive
def test_the_page_has_the_table_of_today() -> None:
    assert table() in PAGE


@pytest.mark.exhaustive
def test_the_figures_over_http_are_the_same() -> None:
    case = next(case for case in CASES if case.name == "aws-database")
    settings = PredictionSettings(
        window=case.window, step=case.step, meaning=ScoreMeaning(case.horizon)
    )
    with served(create_app(settings)) as url:
        code, out, err = invoked(
            root, "scorer", "backtest", url, "--recording", case.name, "-o", "json"
        )
    assert code == 0, err
    document, expected = json.loads(out), measured(case, "all")
    assert document["scorer"]["error"] == pytest.approx(expected.scorer.error)
    assert document["intervals"][0]["coverage"] == expected.intervals[0].coverage
