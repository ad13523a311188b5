"""Which changes of a status become Events."""

from typing import Any

import pytest

from dsf.hub.report.status_events import status_events
from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK, Kind
from tests.dsf.hub.builders import HUB, NOW, scorer


def condition(type_: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": NOW,
    }


def told(
    before: list[dict[str, Any]], after: list[dict[str, Any]], kind: Kind = DYNAMIC_SCORER
) -> list[tuple[str, str, str]]:
    obj = scorer(status={"conditions": before})
    change = Patch(kind, "cpu", HUB, {"status": {"conditions": after}}, "status")
    found = status_events([(kind, obj)], [change])
    return [(each.type, each.reason, each.message) for each in found]


def test_what_breaks_is_a_warning_with_its_message() -> None:
    before = [condition("Ready", "True", "Distributed"), condition("Healthy", "True", "Healthy")]
    after = [
        condition("Ready", "False", "TimedOut", "Healthy: slow"),
        condition("Healthy", "False", "TimedOut", "slow"),
        condition("Distributed", "False", "Unhealthy"),
    ]
    assert told(before, after) == [("Warning", "TimedOut", "Healthy: slow")]


def test_what_is_mended_is_normal() -> None:
    before = [condition("Ready", "False", "NotJSON"), condition("ConfigSynced", "False", "NotJSON")]
    after = [
        condition("Ready", "True", "Distributed", "every chosen managed cluster has it"),
        condition("ConfigSynced", "True", "Synced"),
    ]
    assert told(before, after) == [
        ("Normal", "Distributed", "Ready: every chosen managed cluster has it"),
        ("Normal", "Synced", "ConfigSynced: Synced"),
    ]


def test_that_the_config_cannot_be_read_is_told_on_the_config_and_not_on_every_scorer() -> None:
    before = [condition("Ready", "True", "Distributed"), condition("Distributed", "True", "D")]
    after = [
        condition(type_, "False", "InvalidScoringConfig") for type_ in ("Ready", "Distributed")
    ]
    assert told(before, after) == []


def test_a_config_that_is_not_ready_for_a_cause_that_only_ready_tells_is_a_warning() -> None:
    before = [condition("Ready", "True", "Distributed"), condition("WithinLimit", "True", "Fits")]
    refused = condition("Ready", "False", "WriteRefused", "east: forbidden")
    assert told(before, [refused], DYNAMIC_SCORING_CONFIG) == [
        ("Warning", "WriteRefused", "Ready: east: forbidden")
    ]
    too_large = [
        condition("Ready", "False", "TooLarge", "see the condition WithinLimit"),
        condition("WithinLimit", "False", "TooLarge", "600 KiB"),
    ]
    assert told(before, too_large, DYNAMIC_SCORING_CONFIG) == [
        ("Warning", "TooLarge", "WithinLimit: 600 KiB")
    ]


def test_another_reason_is_news_and_other_words_are_not() -> None:
    bad = condition("ConfigSynced", "False", "NotJSON", "at char 1")
    assert told([bad], [condition("ConfigSynced", "False", "TimedOut", "5 s")])
    assert not told([bad], [condition("ConfigSynced", "False", "NotJSON", "at char 2")])


@pytest.mark.parametrize(
    ("type_", "bad", "good"),
    [
        ("ConfigConflict", "APIConfigWins", "NoConflict"),
        ("ScoresAdjusted", "EntriesMerged", "NothingAdjusted"),
    ],
)
def test_what_should_be_false_is_a_warning_and_its_end_is_normal(
    type_: str, bad: str, good: str
) -> None:
    conflict = condition(type_, "True", bad, "source.host: …")
    assert told([], [conflict]) == [("Warning", bad, f"{type_}: source.host: …")]
    assert told([], [condition(type_, "False", good)]) == []
    assert told([conflict], [condition(type_, "False", good)])[0][0] == "Normal"


def test_a_new_scorer_that_is_well_tells_that_it_is_ready_and_no_more() -> None:
    after = [
        condition("Ready", "True", "Distributed"),
        condition("ConfigSynced", "True", "Synced"),
        condition("Healthy", "True", "Healthy"),
        condition("Scoring", "Unknown", "Waiting"),
    ]
    assert [reason for _, reason, _ in told([], after)] == ["Distributed"]


def test_only_statuses_are_told_of() -> None:
    changes: list[Change] = [
        Patch(DYNAMIC_SCORER, "cpu", HUB, {"metadata": {"labels": {}}}),
        Patch(MANIFEST_WORK, "w", "c1", {"status": {"conditions": []}}, "status"),
    ]
    assert status_events([(DYNAMIC_SCORER, scorer())], changes) == []
