"""The development guide on real OCM: optimise, enforce, wait for compliance, land, reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
def test_reset_removes_everything_generated(guide: Guide, preference: str) -> None:
    told = guide.tell(preference)
    kinds = sorted(entry["kind"] for entry in told.reset["deleted"])
    assert kinds == ["Placement"] * 4 + ["PlacementBinding"] * 2
    assert (told.reset["failed"], told.left) == ([], [])
