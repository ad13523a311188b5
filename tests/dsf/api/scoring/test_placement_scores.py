"""What DynamicScorers say about published scores."""

from typing import Any

from dsf.api.crd.score_meaning import PublishedMeaning
from dsf.api.names import HUB_NAMESPACE
from dsf.api.scoring.placement_scores import (
    format_for_apps,
    meanings,
    published_meaning,
    published_score,
)

MEANT = {"unit": "W", "direction": "LowerIsBetter"}


def scorer(
    name: str = "power", created: str = "", namespace: str = HUB_NAMESPACE, **parts: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": created}
    return {"metadata": metadata, **parts}


def spec(**declared: Any) -> dict[str, Any]:
    base = {"description": "d", "configURL": "http://h/config"}
    return {**base, "scoring": {"params": {"name": "power_score"}}, **declared}


def test_the_status_says_it_and_the_spec_does_not_where_there_is_one() -> None:
    seen = scorer(spec=spec(unit="kW"), status={"scoreName": "power_score", "meaning": MEANT})
    assert meanings([seen]) == {"power-score": PublishedMeaning.model_validate(MEANT)}
    quiet = scorer(spec=spec(unit="kW"), status={"scoreName": "power_score"})
    assert meanings([quiet]) == {}


def test_the_spec_of_an_object_that_no_controller_has_seen_counts_in_the_hubs_namespace() -> None:
    scoring = {"params": {"name": "p"}, "normalize": {"min": 0, "max": 9, "invert": True}}
    unseen = spec(unit="W", direction="lowerisbetter", scoring=scoring)
    assert published_meaning(scorer(spec=unseen)) == PublishedMeaning(direction="HigherIsBetter")
    assert meanings([scorer(namespace="team-a", spec=unseen)]) == {}
    assert meanings([scorer(spec={**unseen, "unit": "x\n"})]) == {}


def test_the_format_that_names_apps_is_found_among_several() -> None:
    formats = {"scoreDimensionFormat": "${node}", "scoreDimensionFormats": ["${app};${device}"]}
    assert format_for_apps(scorer(spec=spec(**formats))) == "${app};${device}"
    assert format_for_apps(scorer(spec=spec(scoreDimensionFormat="${node}"))) == "${node}"
    assert format_for_apps(scorer()) == ""


def test_a_status_that_cannot_be_read_says_nothing() -> None:
    broken = {"scoreName": "power_score", "meaning": {"direction": "Up"}}
    assert published_meaning(scorer(status=broken)) == PublishedMeaning()


def test_the_oldest_scorer_of_a_score_publishes_it() -> None:
    status = {"scoreName": "power_score"}
    old = scorer("b", "2026-01-01T00:00:00Z", status={**status, "meaning": MEANT})
    new = scorer("a", "2026-01-02T00:00:00Z", status={**status, "meaning": {"unit": "kW"}})
    assert meanings([new, old]) == {"power-score": PublishedMeaning.model_validate(MEANT)}


def test_the_name_of_a_score_is_the_one_in_use() -> None:
    synced = {"lastSyncedConfig": {"scoring": {"params": {"name": "synced_score"}}}}
    assert published_score(scorer(spec=spec())) == "power-score"
    assert published_score(scorer(spec=spec(), status=synced)) == "synced-score"
    assert published_score(scorer(spec=spec(), status={"scoreName": "used_score"})) == "used-score"
    assert published_score(scorer()) == ""
