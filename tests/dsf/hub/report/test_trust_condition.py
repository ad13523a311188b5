"""How far a scorer's forecasts can be trusted, on the hub, from what the agents tell."""

from dataclasses import replace
from typing import Any

from dsf.api.conditions import Condition, find, merged
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot.registered_scorer import ProbeResult
from dsf.kube.port import Object
from tests.dsf.hub.builders import NOW, api_config, condition, published, scorer, settled
from tests.dsf.hub.test_plan import fleet, status_of

FORECAST = {"horizon": 600, "truth": {"query": "up"}}


def forecasting(**declared: Any) -> ProbeResult:
    config = {**api_config(), **declared}
    return ProbeResult(health=None, config=ScorerConfig.model_validate(config))


def score(cluster: str, trusted: str) -> Object:
    told = published(cluster)
    conditions = merged(
        told["status"]["conditions"],
        [Condition("Trusted", trusted, "Any")] if trusted else [],
        now=NOW,
    )
    return {**told, "status": {**told["status"], "conditions": conditions}}


def after(*statuses: str, forecast: Object | None = FORECAST) -> Object:
    """Return the scorer after agents have told a status of Trusted on the clusters c1 and c2."""
    declared = {"forecast": forecast} if forecast else {}
    world = fleet((scorer(), forecasting(**declared)))
    names = [obj["metadata"]["name"] for obj in world.clusters]
    scores = tuple(score(name, told) for name, told in zip(names, statuses, strict=False))
    return dict(status_of(settled(replace(world, scores=scores)), "cpu"))


def test_untrusted_forecasts_are_told_with_the_clusters_and_leave_the_scorer_ready() -> None:
    found = after("True", "False")
    status, reason, message = condition(found, "Trusted")
    assert (status, reason) == ("False", "NoBetterThanLastValue")
    assert "no better than the last value on 1 of 2 managed clusters" in message
    assert "minimumTrust" in message
    assert condition(found, "Ready")[0] == "True"


def test_trusted_forecasts_are_counted() -> None:
    assert condition(after("True", "Unknown"), "Trusted") == (
        "True",
        "BetterThanLastValue",
        "forecasts are better than the last value on 1 of 2 managed clusters",
    )


def test_forecasts_that_nobody_has_judged_are_unknown() -> None:
    assert condition(after("Unknown", ""), "Trusted")[:2] == ("Unknown", "InsufficientEvidence")


def test_a_scorer_that_forecasts_nothing_says_nothing_of_trust() -> None:
    found = after("True", forecast=None)
    assert find(found["status"]["conditions"], "Trusted") is None
