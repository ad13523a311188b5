"""What scores mean, on the hub: the status that programs read, and what is wrong about it."""

from dataclasses import replace
from typing import Any

import pytest

from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot.registered_scorer import ProbeResult
from dsf.kube.port import Object
from tests.dsf.hub.builders import (
    LATER,
    World,
    answer,
    api_config,
    condition,
    scorer,
    settled,
    target,
)
from tests.dsf.hub.test_plan import fleet, status_of


def told(scoring: Object | None = None, **declared: Any) -> ProbeResult:
    """Return the answer of an API that declares something about its scores."""
    config = {**api_config(), **declared}
    config["scoring"] = {**config["scoring"], **(scoring or {})}
    return ProbeResult(health=None, config=ScorerConfig.model_validate(config))


def scored(answered: ProbeResult, **spec: Any) -> Object:
    """Return the status of a scorer once the hub has settled."""
    end = settled(fleet((scorer(**spec), answered)))
    return dict(status_of(end, "cpu")["status"])


def test_what_a_config_declares_is_in_the_status() -> None:
    status = scored(
        told(displayName="Power", unit="W", direction="lowerisbetter", range={"min": 0, "max": 90})
    )
    assert status["meaning"] == {
        "displayName": "Power",
        "unit": "W",
        "direction": "LowerIsBetter",
        "range": {"min": 0, "max": 90},
    }
    assert condition({"status": status}, "MeaningClear") == (
        "True",
        "Declared",
        "published scores: Power, lower is better, 0..90, unit W",
    )


def test_a_normalized_score_has_no_unit_and_its_own_range() -> None:
    normalize = {"normalize": {"min": 0, "max": 4, "invert": True}}
    status = scored(
        told(normalize, unit="cores", direction="LowerIsBetter", range={"min": 0, "max": 4})
    )
    assert status["meaning"] == {"direction": "HigherIsBetter", "range": {"min": 0, "max": 100}}


def test_an_open_range_ends_where_ocm_ends() -> None:
    assert scored(told(range={"min": 0}))["meaning"] == {"range": {"min": 0, "max": 100}}
    inverted = told({"normalize": {"min": 0, "max": 1, "invert": True}}, range={"min": 0})
    assert scored(inverted)["meaning"] == {
        "direction": "HigherIsBetter",
        "range": {"min": -100, "max": 100},
    }


def test_a_scorer_that_declares_nothing_has_nothing_more_in_its_status() -> None:
    status = scored(answer())
    assert "meaning" not in status
    assert "MeaningClear" not in {found["type"] for found in status["conditions"]}


def test_in_mode_none_the_object_itself_declares() -> None:
    scoring = {"params": {"name": "cpu_score"}, "normalize": {"min": 0, "max": 4}}
    spec = {"unit": "cores", "direction": "LowerIsBetter"}
    status = scored(answer(), mode="None", source={"type": "None"}, scoring=scoring, **spec)
    assert status["meaning"] == {"direction": "LowerIsBetter"}


def test_the_config_wins_over_the_object_and_the_difference_is_told() -> None:
    status = scored(told(unit="W", direction="lowerisbetter"), unit="kW", direction="LowerIsBetter")
    assert status["meaning"] == {"unit": "W", "direction": "LowerIsBetter"}
    assert condition({"status": status}, "ConfigConflict")[2].startswith(
        "unit: kW in spec, W from the API;"
    )


@pytest.mark.parametrize(
    ("answered", "reason", "words"),
    [
        (
            told({"normalize": {"min": 0, "max": 1, "invert": True}}, direction="HigherIsBetter"),
            "DirectionInverted",
            "a lower published score is better",
        ),
        (told(range={"min": 0, "max": 4096}), "RangeTooWide", "0..4096, and OCM accepts -100..100"),
        (told(range={"min": -101}), "RangeTooWide", "become -101..inf"),
        (told(range={"min": 0, "max": 1}), "RangeTooNarrow", "the whole numbers 0 to 1"),
    ],
)
def test_a_meaning_that_misleads_is_told(answered: ProbeResult, reason: str, words: str) -> None:
    status = scored(answered)
    found = condition({"status": status}, "MeaningClear")
    assert found[:2] == ("False", reason)
    assert words in found[2]
    assert condition({"status": status}, "Ready")[0] == "True"


def test_scores_that_only_metrics_have_may_have_any_range() -> None:
    status = scored(told(range={"min": 0, "max": 4096}), scoreDestination="None")
    assert condition({"status": status}, "MeaningClear")[1] == "Declared"


def test_two_scorers_of_one_score_with_different_directions_are_named() -> None:
    old = scorer("old", url="http://old:8000/config")
    new = scorer("new", url="http://new:8000/config", created=LATER)
    end = settled(
        fleet((old, told(direction="HigherIsBetter")), (new, told(direction="LowerIsBetter")))
    )
    status, reason, message = condition(status_of(end, "new"), "MeaningClear")
    assert (status, reason) == ("False", "DirectionConflict")
    assert "LowerIsBetter here, and HigherIsBetter in the older DynamicScorer old" in message
    assert condition(status_of(end, "old"), "MeaningClear")[:2] == ("True", "Declared")


def test_the_meaning_of_scores_that_are_still_valid_outlives_a_broken_config() -> None:
    end = settled(fleet((scorer(), told(unit="W", direction="LowerIsBetter"))))
    unnamed = {**api_config(), "scoring": {"params": {"interval": 30}}}
    broken = ProbeResult(health=None, config=ScorerConfig.model_validate(unnamed))
    status = status_of(settled(replace(end, probes={target(scorer()): broken})), "cpu")["status"]
    assert condition({"status": status}, "MeaningClear")[:2] == ("Unknown", "NotResolved")
    assert status["meaning"] == {"unit": "W", "direction": "LowerIsBetter"}


def test_the_condition_stays_once_it_has_said_something() -> None:
    start = fleet((scorer(), told(range={"min": 0, "max": 4096})))
    end = settled(start)
    quiet: World = replace(end, probes={target(scorer()): answer()})
    status = status_of(settled(quiet), "cpu")
    assert condition(status, "MeaningClear")[:2] == ("True", "NotDeclared")
    assert "meaning" not in status["status"]
