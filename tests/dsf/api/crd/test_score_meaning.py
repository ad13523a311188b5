"""What a scoring API declares about its scores."""

from typing import Any

import pytest
from pydantic import ValidationError

from dsf.api.crd.score_meaning import ScoreRange, read_direction
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
from dsf.api.scoring.scoring_api import ScorerConfig
from tests.dsf.agent.builders import summary


def config(**declared: Any) -> dict[str, Any]:
    return {"name": "x", "source": {}, "scoring": {"params": {"name": "x"}}, **declared}


def test_a_config_declares_what_its_scores_mean() -> None:
    declared = {
        "displayName": "CPU cores in use",
        "unit": "cores",
        "direction": "lowerISBetter",
        "range": {"min": 0},
    }
    read = ScorerConfig.model_validate(config(**declared))
    assert read.model_dump(by_alias=True, exclude_none=True).items() >= declared.items()
    assert read_direction(read.direction) == "LowerIsBetter"
    assert read_direction(None) is None


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
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScorerConfig.model_validate(config(**wrong))


def test_the_summary_carries_the_range_and_only_if_it_is_declared() -> None:
    plain = summary("a")
    assert "scoringRange" not in dump_summaries([plain])
    ranged = plain.model_copy(update={"scoring_range": ScoreRange(min=0)})
    assert load_summaries(dump_summaries([ranged])) == (ranged,)


@pytest.mark.parametrize(
    ("ends", "text"),
    [({"min": 0}, "0.."), ({"max": 2.5}, "..2.5"), ({"min": -1, "max": 4}, "-1..4")],
)
def test_a_range_is_written_with_two_dots(ends: dict[str, float], text: str) -> None:
    assert str(ScoreRange(**ends)) == text
