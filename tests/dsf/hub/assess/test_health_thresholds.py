"""One failed probe changes nothing; several in a row change the health."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.hub.assess.health_thresholds import ProbeHistory, Thresholds, step
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult
from tests.dsf.hub.builders import answer

DEFAULT = Thresholds()
Said = Literal["Active", "Inactive", "Unknown"] | None

WELL = answer()
DOWN = ProbeResult(ProbeFailure("TimedOut", "slow"), ProbeFailure("TimedOut", "slow"))
SICK = ProbeResult(ProbeFailure("BadStatus", "503"), WELL.config)
GARBLED = ProbeResult(None, ProbeFailure("NotJSON", "<html>"))


def believed(
    *answers: ProbeResult, said: Said = None, thresholds: Thresholds = DEFAULT
) -> ProbeResult:
    track: ProbeHistory | None = None
    for each in answers:
        track = step(track, each, said, thresholds)
    assert track is not None
    return track.believed


@pytest.mark.parametrize("first", [WELL, DOWN, SICK, GARBLED])
def test_the_first_answer_of_an_unknown_api_is_believed(first: ProbeResult) -> None:
    assert believed(first) == first


def test_two_lost_probes_change_nothing_and_the_third_does() -> None:
    assert believed(WELL, DOWN, DOWN) == WELL
    assert believed(WELL, DOWN, DOWN, DOWN) == DOWN


def test_failures_count_only_in_a_row() -> None:
    assert believed(WELL, DOWN, DOWN, WELL, DOWN, DOWN) == WELL


def test_one_success_does_not_bring_it_back_and_two_do() -> None:
    assert believed(DOWN, WELL).health == DOWN.health
    assert believed(DOWN, WELL, WELL) == WELL
    assert believed(DOWN, WELL, DOWN, WELL).health == DOWN.health


def test_the_message_of_a_known_failure_is_the_latest() -> None:
    assert believed(DOWN, SICK).health == SICK.health


def test_a_config_is_believed_at_once_and_a_failure_to_fetch_it_is_not() -> None:
    assert believed(WELL, answer("other")).config == answer("other").config
    assert believed(WELL, GARBLED, GARBLED).config == WELL.config
    assert believed(WELL, GARBLED, GARBLED, GARBLED).config == GARBLED.config
    assert believed(GARBLED, WELL).config == WELL.config


def test_after_a_restart_one_lost_probe_is_no_news_either() -> None:
    assert believed(DOWN, DOWN, said="Active") == ProbeResult(None, None)
    assert believed(DOWN, DOWN, DOWN, said="Active").health == DOWN.health
    assert believed(WELL, said="Active") == WELL


def test_after_a_restart_an_inactive_api_has_to_prove_itself_too() -> None:
    recovering = believed(WELL, said="Inactive").health
    assert recovering is not None
    assert recovering.reason == "Recovering"
    assert believed(WELL, WELL, said="Inactive") == WELL


def test_doubt_asks_for_another_answer_soon() -> None:
    assert step(step(None, WELL, None, DEFAULT), DOWN, None, DEFAULT).doubtful
    assert not step(None, WELL, None, DEFAULT).doubtful


@given(
    flags=st.lists(st.booleans(), min_size=1, max_size=40),
    failures=st.integers(1, 4),
    successes=st.integers(1, 4),
)
def test_belief_changes_exactly_when_so_many_in_a_row_say_otherwise(
    flags: list[bool], failures: int, successes: int
) -> None:
    expected, run = flags[0], 0
    for flag in flags[1:]:
        run = 0 if flag == expected else run + 1
        if run >= (successes if flag else failures):
            expected, run = flag, 0
    answers = [WELL if flag else DOWN for flag in flags]
    end = believed(*answers, thresholds=Thresholds(failures, successes))
    assert (end.health is None) == expected
