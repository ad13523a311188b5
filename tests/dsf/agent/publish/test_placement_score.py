from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure, Stage
from dsf.agent.publish.placement_score import (
    RoundReport,
    is_own,
    placement_score,
    score_label,
    status_patch,
)
from dsf.agent.score.expiry import validity
from dsf.agent.score.result_rules import AddOnPlacementScoreItem, RoundScores
from dsf.api.conditions import merged
from dsf.api.scoring.score_conditions import RULES, Adjustments, Rule
from dsf.api.untrusted_text import UntrustedText
from dsf.kube import json_merge_patch
from tests.house.marker import MARKER, WORDS, raw, unquoted

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
VALID = timedelta(seconds=90)
GOOD = RoundReport.success(
    RoundScores(entries=(AddOnPlacementScoreItem("a", 1), AddOnPlacementScoreItem("b", -2)))
)
NO_SOURCE = RoundReport.failed(Failure("source", "Unreachable", "no route"))
NO_SCORES = RoundReport.failed(Failure("scoring", "ServerError", "answered 500"))


def created() -> dict[str, Any]:
    obj = placement_score("cluster1", "my_score")
    obj["metadata"]["resourceVersion"] = "1"
    return obj


def written(
    obj: dict[str, Any], told: RoundReport, at: datetime = NOW, valid_for: timedelta = VALID
) -> dict[str, Any]:
    patch = status_patch(obj, told, now=at, valid_for=valid_for)
    assert patch is not None
    return dict(json_merge_patch.merged(obj, patch))


def test_the_object_has_a_name_that_dns_knows_and_labels_of_its_owner() -> None:
    obj = placement_score("cluster1", "My_Score")
    assert (obj["metadata"]["namespace"], obj["metadata"]["name"]) == ("cluster1", "my-score")
    assert "status" not in obj
    assert is_own(obj, "My_Score")


def test_an_object_of_another_score_or_owner_is_not_own() -> None:
    obj = placement_score("cluster1", "a_b")
    assert not is_own(obj, "a-b")
    assert not is_own({"metadata": {"name": "a-b"}}, "a_b")
    assert not is_own({"metadata": {"labels": {"app.kubernetes.io/managed-by": "x"}}}, "a_b")


@pytest.mark.parametrize("name", ["a", "a_b.c-d", "x" * 63])
def test_a_score_name_that_is_a_label_value_stays(name: str) -> None:
    assert score_label(name) == name


@given(st.text())
def test_every_score_name_has_a_label_value(name: str) -> None:
    label = score_label(name)
    assert 0 < len(label) <= 63
    assert label.replace("-", "").replace("_", "").replace(".", "").isalnum()


def test_scores_are_written_with_their_validity_and_conditions() -> None:
    status = written(created(), GOOD)["status"]
    assert status["scores"] == [{"name": "a", "value": 1}, {"name": "b", "value": -2}]
    assert status["validUntil"] == "2026-01-01T12:01:30Z"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "SourceFetched": "True",
        "Scored": "True",
        "Published": "True",
    }


def test_the_patch_holds_only_for_what_was_observed() -> None:
    patch = status_patch(created(), GOOD, now=NOW, valid_for=VALID)
    assert patch is not None
    assert patch["metadata"] == {"resourceVersion": "1"}


def test_counts_that_differ_in_every_round_wait_for_the_renewal() -> None:
    def adjusted(count: int) -> RoundReport:
        return RoundReport.success(
            RoundScores(
                (AddOnPlacementScoreItem("a", 1),), adjusted={"NotFinite": count}, results=9
            )
        )

    obj = written(created(), adjusted(1))
    soon, later = NOW + timedelta(seconds=30), NOW + timedelta(seconds=45)
    assert status_patch(obj, adjusted(2), now=soon, valid_for=VALID) is None
    told = {c["type"]: c for c in written(obj, adjusted(2), later)["status"]["conditions"]}
    said = "9 results became 1 entry: dropped 2 scores that are not finite"
    assert told["Scored"]["message"] == said
    clean = RoundReport.success(RoundScores((AddOnPlacementScoreItem("a", 1),)))
    assert status_patch(obj, clean, now=soon, valid_for=VALID) is not None


def test_another_message_of_a_failure_is_written_at_once() -> None:
    obj = written(created(), NO_SOURCE)
    other = RoundReport.failed(Failure("source", "Unreachable", "no name"))
    told = {c["type"]: c for c in written(obj, other)["status"]["conditions"]}
    assert told["SourceFetched"]["message"] == "no name"


def test_half_spent_scores_are_renewed_alone() -> None:
    obj = written(created(), GOOD)
    patch = status_patch(obj, GOOD, now=NOW + timedelta(seconds=45), valid_for=VALID)
    assert patch is not None
    assert patch["status"] == {"validUntil": "2026-01-01T12:02:15Z"}


def test_changed_scores_are_written_at_once() -> None:
    changed = RoundReport.success(RoundScores(entries=(AddOnPlacementScoreItem("a", 2),)))
    status = written(written(created(), GOOD), changed, NOW + timedelta(seconds=1))["status"]
    assert status["scores"] == [{"name": "a", "value": 2}]
    assert status["validUntil"] == "2026-01-01T12:01:31Z"


@pytest.mark.parametrize("valid_until", [None, "tomorrow", "2026-01-01T12:00:00", 5])
def test_a_validity_that_cannot_be_read_is_written_anew(valid_until: Any) -> None:
    obj = written(created(), GOOD)
    obj["status"]["validUntil"] = valid_until
    assert written(obj, GOOD)["status"]["validUntil"] == "2026-01-01T12:01:30Z"


def test_a_validity_beyond_what_may_be_is_shortened() -> None:
    obj = written(created(), GOOD, valid_for=timedelta(days=7))
    assert written(obj, GOOD)["status"]["validUntil"] == "2026-01-01T12:01:30Z"


def test_a_failing_source_is_told_from_a_failing_scorer() -> None:
    source = {c["type"]: c for c in written(created(), NO_SOURCE)["status"]["conditions"]}
    assert source["SourceFetched"]["reason"] == "Unreachable"
    assert source["SourceFetched"]["message"] == "no route"
    assert source["Scored"]["status"] == "Unknown"
    scorer = {c["type"]: c for c in written(created(), NO_SCORES)["status"]["conditions"]}
    assert scorer["SourceFetched"]["status"] == "True"
    assert scorer["Scored"]["reason"] == "ServerError"


def test_a_bug_of_the_agent_is_told_from_both() -> None:
    bug = RoundReport.failed(Failure("agent", "InternalError", "index out of range"))
    found = {c["type"]: c for c in written(created(), bug)["status"]["conditions"]}
    assert (found["SourceFetched"]["status"], found["Scored"]["status"]) == ("Unknown", "False")
    assert found["SourceFetched"]["reason"] == found["Scored"]["reason"] == "InternalError"
    assert found["Scored"]["message"] == "index out of range"


def test_the_time_of_a_transition_is_kept_until_the_next() -> None:
    obj = written(written(created(), NO_SOURCE), GOOD, NOW + timedelta(hours=1))
    times = {c["type"]: c["lastTransitionTime"] for c in obj["status"]["conditions"]}
    assert times["SourceFetched"] == "2026-01-01T13:00:00Z"
    again = written(obj, GOOD, NOW + timedelta(hours=2))
    times = {c["type"]: c["lastTransitionTime"] for c in again["status"]["conditions"]}
    assert times["SourceFetched"] == "2026-01-01T13:00:00Z"


def test_what_was_adjusted_is_said() -> None:
    adjusted: dict[Rule, int] = dict(zip(RULES, range(1, 9), strict=True))
    scores = RoundScores(
        entries=(AddOnPlacementScoreItem("a", 1),),
        adjusted=adjusted,
        results=30,
        missing=("node", "pod"),
    )
    told = {c.type: c for c in RoundReport.success(scores, ("partial data",)).conditions}
    assert told["SourceFetched"].message == "partial data"
    assert told["Scored"].message == (
        "30 results became 1 entry: dropped 1 scores that are not finite;"
        " 2 scores are outside the declared range; cut labels of 3 results to 256 characters;"
        " 4 results lack a label that scoreDimensionFormat names (node, pod);"
        " dropped 5 results with the name of an earlier one; clamped 6 scores to -100..100;"
        " left out 7 label sets beyond the limit of a score: return fewer results;"
        " left out 8 entries that do not fit into one object"
    )
    assert Adjustments.read(told["Scored"].message) == scores.adjustments
    assert told["Published"].reason == "EntriesCut"
    assert "8 of 9" in told["Published"].message
    assert {c.status for c in told.values()} == {"True"}


def test_scores_that_are_all_nan_are_not_published() -> None:
    told = RoundReport.success(RoundScores(adjusted={"NotFinite": 3}))
    published = next(one for one in told.conditions if one.type == "Published")
    assert (published.status, published.reason) == ("False", "NoFiniteScores")


def test_no_results_are_no_failure_but_said() -> None:
    told = {c.type: c for c in RoundReport.success(RoundScores()).conditions}
    assert told["Scored"].reason == "NoResults"
    assert written(created(), RoundReport.success(RoundScores()))["status"]["scores"] == []


def test_validity_follows_the_interval() -> None:
    assert validity(1) == timedelta(seconds=90)
    assert validity(30) == timedelta(seconds=90)
    assert validity(60) == timedelta(seconds=180)
    assert validity(10**30) == timedelta(days=21)


TEXT = UntrustedText(MARKER)


def report_of(stage: Stage) -> RoundReport:
    return RoundReport.failed(Failure(stage, "R", TEXT), (TEXT, TEXT.strip(), TEXT[5:]))


@pytest.mark.parametrize(
    "report",
    [
        RoundReport.success(RoundScores(), (TEXT, TEXT.strip())),
        report_of("source"),
        report_of("scoring"),
        report_of("agent"),
        RoundReport.failed(Failure("scoring", "R", "refused")).with_remark(TEXT[1:].strip()),
    ],
    ids=["warnings", "source", "scoring", "agent", "remark"],
)
def test_a_report_quotes_what_servers_say(report: RoundReport) -> None:
    messages = [item["message"] for item in merged([], report.conditions, now="2026-01-01T00:00Z")]
    assert any(WORDS[5:] in message for message in messages)
    assert [message for message in messages if unquoted(message, WORDS[5:]) or raw(message)] == []
