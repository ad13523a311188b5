"""What a scoring API declares about its scores, in its config."""

from typing import Any

import pytest
from pydantic import ValidationError

from dsf.api.crd.score_meaning import ScoreRange, read_direction
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
from dsf.api.scoring.scoring_api import ScorerConfig
from tests.dsf.agent.builders import summary

FORECAST = {"horizon": 60, "truth": {"query": "up"}}


def config(scoring: dict[str, Any] | None = None, **declared: Any) -> dict[str, Any]:
    scored = {"params": {"name": "x"}, **(scoring or {})}
    return {"name": "x", "source": {}, "scoring": scored, **declared}


def test_a_config_declares_what_its_scores_mean() -> None:
    declared = {
        "displayName": "CPU cores in use",
        "unit": "cores",
        "direction": "lowerISBetter",
        "range": {"min": 0},
    }
    read = ScorerConfig.model_validate(config(**declared, forecast=FORECAST))
    assert read.model_dump(by_alias=True, exclude_none=True).items() >= declared.items()
    assert read_direction(read.direction) == "LowerIsBetter"
    assert read_direction(None) is None
    assert read.forecast


@pytest.mark.parametrize(
    "wrong",
    [
        {"range": {"min": 1, "max": 0}},
        {"range": {"min": 1, "max": 1}},
        {"range": {}},
        {"range": {"min": "NaN"}},
        {"range": {"max": "Infinity"}},
        {"direction": "Up"},
        {"direction": "LowerIsBetter\n"},
        {"unit": "x" * 33},
        {"unit": "W\n"},
        {"unit": "W\x1b[31m"},
        {"unit": ""},
        {"displayName": "x" * 101},
        {"displayName": " "},
        {"scoring": {"normalize": {"min": 1, "max": 1}}},
        {"scoring": {"normalize": {"min": 2, "max": 1}}},
        {"scoring": {"normalize": {"min": 0}}},
        {"scoring": {"normalize": {"min": "NaN", "max": 1}}},
        {"scoring": {"onFailure": {"policy": "Hold"}}},
        {"scoring": {"onFailure": {"policy": "Value"}}},
        {"scoring": {"onFailure": {"policy": "Value", "value": 101}}},
        {"scoring": {"onFailure": {"policy": "Hold", "holdSeconds": 0}}},
        {"scoring": {"onFailure": {"policy": "Retry"}}},
        {"forecast": {**FORECAST, "horizon": 0}},
        {"forecast": {**FORECAST, "horizon": -60}},
        {"forecast": {**FORECAST, "horizon": 86_401}},
        {"forecast": {**FORECAST, "horizon": "NaN"}},
        {"forecast": {**FORECAST, "truth": {"query": ""}}},
        {"forecast": {**FORECAST, "truth": {"query": " "}}},
        {"forecast": {**FORECAST, "truth": {}}},
        {"forecast": {**FORECAST, "truth": None}},
        {"forecast": {**FORECAST, "quantile": 0}},
        {"forecast": {**FORECAST, "quantile": 1}},
        {"forecast": {**FORECAST, "quantile": float("nan")}},
    ],
    ids=str,
)
def test_a_declaration_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScorerConfig.model_validate(config(**wrong))


def test_a_summary_carries_the_rules_of_its_scores() -> None:
    """What a summary carries of a scorer that declares none: tests/dsf/hub/assess."""
    declared = summary(
        scoring_normalize=Normalize(min=0, max=5),
        scoring_on_failure=OnFailure(policy="Value", value=-100),
        scoring_range=ScoreRange(min=0),
    )
    text = dump_summaries([declared])
    assert "holdSeconds" not in text
    assert load_summaries(text) == (declared,)


@pytest.mark.parametrize(
    ("ends", "text"),
    [({"min": 0}, "0.."), ({"max": 2.5}, "..2.5"), ({"min": -1, "max": 4}, "-1..4")],
)
def test_a_range_is_written_with_two_dots(ends: dict[str, float], text: str) -> None:
    assert str(ScoreRange(**ends)) == text
