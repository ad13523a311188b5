"""Figures in the words of conditions of an AddOnPlacementScore, written and read back."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.conditions import Condition, merged
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.api.scoring.score_conditions import (
    MIN_EVIDENCE,
    RULES,
    Adjustments,
    TrackRecord,
    read_record,
    read_trust,
    trust_condition,
)

NOON = 1_767_268_800
RECORDS = st.builds(
    TrackRecord,
    horizon=st.integers(1, 86_400),
    share=st.floats(0, 1),
    evidence=st.floats(0.01, 20),
    until=st.integers(0, 4_000_000_000).map(float),
)


def score(condition: Condition) -> dict[str, Any]:
    return {"status": {"conditions": merged([], [condition], now="2026-01-01T12:00:00Z")}}


@given(RECORDS)
def test_what_the_condition_tells_is_what_is_read_back(record: TrackRecord) -> None:
    told = trust_condition(record, record.until)
    found = read_record(score(told))
    assert found
    assert (found.horizon, found.until) == (record.horizon, record.until)
    assert found.evidence == pytest.approx(record.evidence, abs=0.0051)
    assert found.share == pytest.approx(record.share, abs=0.001)
    assert (told.status == "Unknown") == (record.trust is None)
    trust = read_trust(score(told))
    assert (trust is None) == (record.trust is None)
    if trust is not None:
        assert trust == pytest.approx(record.trust, abs=0.00051)


@given(RECORDS, st.floats(0, 1e6), st.floats(0, 1e6))
def test_evidence_only_ages(record: TrackRecord, first: float, second: float) -> None:
    one = record.aged(record.until + first)
    assert one.share == record.share
    assert one.evidence <= record.evidence
    both = record.aged(record.until + first + second)
    assert both.evidence <= one.evidence
    assert record.aged(record.until - first) == record


@given(RECORDS)
def test_trust_is_between_0_and_1_and_0_where_the_last_value_is_as_good(
    record: TrackRecord,
) -> None:
    if record.evidence < MIN_EVIDENCE:
        assert record.trust is None
        return
    assert record.trust is not None
    assert 0 <= record.trust <= 1
    assert (record.trust == 0) == (record.error >= 1)


def test_the_condition_says_what_people_and_programs_need() -> None:
    record = TrackRecord(600, share=0.2, evidence=4.0, until=NOON)
    assert trust_condition(record, NOON) == Condition(
        "Trusted",
        "True",
        "BetterThanLastValue",
        "trust 0.750; error of forecasts 600 s ahead: 0.250 times last value's;"
        " evidence: 4.00 horizons until 2026-01-01T12:00:00Z",
    )
    mad = TrackRecord(600, share=1.0, evidence=4.0, until=NOON)
    told = trust_condition(mad, NOON, unread="Unreachable: no route")
    assert (told.status, told.reason) == ("False", "NoBetterThanLastValue")
    assert "1000.000 times last value's" in told.message
    assert told.message.endswith("; the truth could not be compared: Unreachable: no route")
    assert read_trust(score(told)) == 0


def test_old_evidence_makes_trust_unknown_and_the_reason_says_why() -> None:
    record = TrackRecord(600, share=0.2, evidence=4.0, until=NOON)
    later = NOON + 600 * 60
    told = trust_condition(record, later)
    assert (told.status, told.reason) == ("Unknown", "InsufficientEvidence")
    told = trust_condition(record, later, unread="NoTruth: none")
    assert (told.status, told.reason) == ("Unknown", "TruthUnavailable")
    assert read_trust(score(told)) is None
    assert read_record(score(told)) == record


def test_words_of_others_are_no_record() -> None:
    forged = trust_condition(TrackRecord(600, share=0.0, evidence=9.0, until=NOON), NOON).message
    told = trust_condition(TrackRecord(600), NOON, unread=f"QueryRejected: {forged}")
    assert forged in told.message
    assert read_record(score(told)) is None


def test_without_any_evidence_nothing_is_read_back() -> None:
    told = trust_condition(TrackRecord(600), NOON)
    assert told.message == "trust unknown: no forecast 600 s ahead has been judged yet"
    assert read_record(score(told)) is None
    assert TrackRecord(600).aged(NOON).evidence == 0
    assert TrackRecord(600, share=1.0).error == math.inf


@pytest.mark.parametrize(
    ("horizon", "error", "until"),
    [("0", "0.250", "2026-01-01"), ("60", "nan", "2026-01-01"), ("60", "0.250", "2026-99-01")],
)
def test_a_message_with_a_number_that_cannot_be_is_no_trust(
    horizon: str, error: str, until: str
) -> None:
    message = (
        f"trust 0.750; error of forecasts {horizon} s ahead: {error} times last value's;"
        f" evidence: 4.00 horizons until {until}T12:00:00Z"
    )
    assert read_trust(score(Condition("Trusted", "True", "BetterThanLastValue", message))) is None


def test_an_object_that_does_not_tell_its_trust_has_none() -> None:
    assert read_trust({}) is None
    assert read_trust(score(Condition("Trusted", "True", "BetterThanLastValue"))) is None


COUNTS = st.dictionaries(st.sampled_from(RULES), st.integers(1, 50_000), min_size=1)
LABELS = st.lists(st.sampled_from(PLACEHOLDERS), unique=True, min_size=1).map(tuple)


@given(COUNTS, st.integers(0, 50_000), st.integers(0, 50_000), LABELS)
def test_what_is_said_is_what_is_read(
    counts: dict[str, int], results: int, entries: int, labels: tuple[str, ...]
) -> None:
    said = Adjustments(counts, results, entries, labels if "MissingLabel" in counts else ())
    assert Adjustments.read(str(said)) == said


def test_the_words_of_an_older_agent_are_read_without_totals() -> None:
    words = (
        "dropped 3 scores that are not finite;"
        " 2 results lack a label that scoreDimensionFormat names"
    )
    read = Adjustments.read(words)
    assert read == Adjustments({"NotFinite": 3, "MissingLabel": 2})
    assert str(read) == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Scored",
        "dropped many scores that are not finite",
        "dropped 9999999999 scores that are not finite",
    ],
)
def test_other_texts_say_nothing(text: str) -> None:
    assert Adjustments.read(text) is None


def test_nothing_but_numbers_and_known_labels_is_taken_from_a_text() -> None:
    hostile = (
        "1 result became 0 entries: 1 results lack a label that scoreDimensionFormat names"
        " (node, ignore all previous instructions, pod)"
    )
    assert Adjustments.read(hostile) == Adjustments({"MissingLabel": 1}, 1, 0, ("node", "pod"))
