"""The development guide on real OCM: optimise, enforce, wait for compliance, land, reset."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from .guide import WORKLOADS, request
from .scorers import PERFORMANCE, POWER

if TYPE_CHECKING:
    from .guide import Guide

GOLDEN = [("performance", 115, "3g"), ("power", 170, "2g")]
DEVICES = {"3g": "3g.48gb", "2g": "2g.24gb"}


@pytest.mark.parametrize(("preference", "objective", "profile"), GOLDEN)
def test_the_guide(guide: Guide, preference: str, objective: int, profile: str) -> None:
    told = guide.tell(preference)
    assert (told.answer["status"], told.answer["objective_value"]) == ("Optimal", objective)
    assert told.answer["policies"] == {
        cluster: f"policy-enable-mig-{profile}-{cluster}" for cluster in ("east", "west")
    }
    assert sorted(told.decided.values()) == [["east"], ["west"]]
    assert told.settings == {"east": DEVICES[profile], "west": DEVICES[profile]}
    assert told.waiting == {"app01-placement": [], "app02-placement": []}
    assert sorted(told.placed.values()) == [["east"], ["west"]]
    assert len(told.landed) == 2


@pytest.mark.parametrize("preference", ["performance", "power"])
def test_optimizing_again_changes_nothing(guide: Guide, preference: str) -> None:
    told = guide.tell(preference)
    assert told.again["changes"] == []


@pytest.mark.parametrize("preference", ["performance", "power"])
def test_optimizing_again_puts_back_what_others_changed(guide: Guide, preference: str) -> None:
    changes = guide.tell(preference).repaired["changes"]
    assert sorted((change["action"], change["kind"]) for change in changes) == [
        ("patch", "Placement"),
        ("patch", "PlacementBinding"),
    ]


@pytest.mark.parametrize("preference", ["performance", "power"])
def test_the_placement_status_follows_the_guide(guide: Guide, preference: str) -> None:
    told = guide.tell(preference)
    rows = [(item["state"], item["reason"]) for item in told.status["workloads"]]
    assert rows == [("Landed", "ResourcesAvailable")] * 2
    assert all(item["since"] for item in told.status["workloads"])
    assert {item["compliance"] for item in told.status["policies"]} == {"Compliant"}
    assert told.status["drift"] == []
    assert {"PlacementEdited", "BindingEdited"} <= {item["reason"] for item in told.drift["drift"]}


def test_a_namespace_without_rights_is_refused_with_words(guide: Guide) -> None:
    answer = guide.ask("POST", "/optimize", {**request("performance"), "namespace": "default"})
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
    assert (
        "create placements.cluster.open-cluster-management.io in namespace default"
        in (answer.json()["detail"])
    )


@pytest.mark.parametrize("token", ["", "forged", "of another audience"])
def test_a_caller_without_a_token_for_the_optimizer_is_refused(guide: Guide, token: str) -> None:
    if token == "of another audience":
        token = guide.hub.token(f"{WORKLOADS}/planner")
    other = replace(guide, token=token)
    answer = other.ask("GET", "/addonplacementscores")
    assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")


def test_the_scores_are_listed_with_what_their_scorers_say(guide: Guide) -> None:
    listed = {(item["cluster"], item["name"]): item for item in guide.scores()["items"]}
    assert {(cluster, name) for cluster in ("east", "west") for name in (PERFORMANCE, POWER)} <= (
        listed.keys()
    )
    assert listed["east", PERFORMANCE]["score_dimension_format"] == "${app};${device}"
    assert not any(item["expired"] for item in listed.values())


@pytest.mark.parametrize("preference", ["performance", "power"])
def test_reset_removes_everything_generated(guide: Guide, preference: str) -> None:
    told = guide.tell(preference)
    kinds = sorted(entry["kind"] for entry in told.reset["deleted"])
    assert kinds == ["Placement"] * 4 + ["PlacementBinding"] * 2
    assert (told.reset["failed"], told.left) == ([], [])
