"""What scores mean, what agents did to results, and where a scorer has to be: told on the hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from ..harness.api import condition_of
from .conftest import SCORE
from .scorers import NEAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.hub import Hub

NAME = "meant"
# The scorer always says NEAR, so that every agent clamps twice the end of this scale.
NORMALIZE = {"min": 0, "max": NEAR / 2}


@pytest.fixture
def meant(
    hub: Hub, framework: str, registered: list[Object], scored: dict[tuple[str, str], Object]
) -> Iterator[Object]:
    """A DynamicScorer that declares what its scores mean; removed afterwards, with its scores."""
    [nearness] = [obj for obj in registered if obj["metadata"]["name"] == "nearness"]
    spec = nearness["spec"]
    scoring = {
        **spec["scoring"],
        "params": {"name": "meant_score", "interval": 1},
        "normalize": NORMALIZE,
    }
    declared = {
        "displayName": "Distance",
        "unit": "km",
        "direction": "lowerISBetter",
        "range": {"min": 0, "max": 10},
    }
    metadata = {"name": NAME, "namespace": framework}
    whole = {**nearness, "metadata": metadata, "spec": {**spec, **declared, "scoring": scoring}}
    hub.apply(whole)
    yield whole
    hub.api.delete(whole["apiVersion"], whole["kind"], NAME, framework)
    until("the score to be gone", lambda: not hub.api.find(*SCORE, "meant-score", "east"))


def test_the_status_says_what_is_published_and_what_was_lost(hub: Hub, meant: Object) -> None:
    key = (meant["apiVersion"], meant["kind"], NAME, meant["metadata"]["namespace"])

    def adjusted() -> Object:
        return condition_of(hub.api.get(*key), "ScoresAdjusted")

    clamped = "1 result became 1 entry: 1 scores are outside the declared range; clamped 1 scores"
    told = tuple(f"{cluster}: {clamped}" for cluster in ("east", "west"))

    def counted() -> bool:
        return all(each in adjusted().get("message", "") for each in told)

    until("the agents' counts", counted)
    assert (adjusted()["status"], adjusted()["reason"]) == ("True", "AllClamped")
    status = hub.api.get(*key)["status"]
    assert status["meaning"] == {
        "displayName": "Distance",
        "direction": "LowerIsBetter",
        "range": {"min": 0, "max": 25},
    }
    assert condition_of(hub.api.get(*key), "MeaningClear")["reason"] == "Declared"


def test_a_scorer_in_another_namespace_is_told(hub: Hub, meant: Object) -> None:
    place = hub.namespace("misplaced")
    metadata = {"name": NAME, "namespace": place}
    stray = {**meant, "metadata": metadata}
    hub.apply(stray)
    key = (stray["apiVersion"], stray["kind"], NAME, place)
    until("the reason", lambda: condition_of(hub.api.get(*key), "Ready").get("reason"))
    assert condition_of(hub.api.get(*key), "Ready")["reason"] == "OtherNamespace"
    hub.api.delete(*key)
