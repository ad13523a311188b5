"""Rounds as scripts of events and commands."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.round_events import (
    ApplyOnFailure,
    Command,
    ConfigChanged,
    Event,
    OnFailureApplied,
    ProbeFinished,
    ProbeHealth,
    Pushed,
    RoundFinished,
    StartRound,
    StopScorer,
    Tick,
    WakeAt,
)
from dsf.agent.round_schedule import (
    CEILING_SECONDS,
    PROBE_SECONDS,
    RETRY_AFTER_SECONDS,
    SPREAD_SECONDS,
    RoundSchedule,
    pause_left,
    pause_remark,
    paused_until,
    scores,
    step,
)
from dsf.agent.scorer_selection import SelectedScorers, read_scorers, select_scorers
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.api.untrusted_text import InvalidInput
from tests.dsf.agent.builders import summary
from tests.repository import ROOT


def test_summaries_of_the_hub_are_read() -> None:
    summaries = (summary("a"), summary("b"))
    assert read_scorers(dump_summaries(summaries)) == SelectedScorers(summaries)


def test_the_example_of_the_documents_is_read() -> None:
    example = ROOT / "docs/examples/summaries.json"
    found = read_scorers(example.read_text(encoding="utf-8"))
    assert isinstance(found, SelectedScorers)
    assert [one.name for one in found.summaries] == ["example-performance-scorer"]
    assert not found.problems


def test_an_empty_list_is_a_configuration() -> None:
    assert read_scorers("[]") == SelectedScorers()


def test_text_that_is_no_list_is_invalid() -> None:
    for text in ("", "{}", "[{}]", "null", "[" * 1000):
        found = read_scorers(text)
        assert isinstance(found, InvalidInput)
        assert found.reason == "InvalidSummaries"


def test_two_scores_of_one_object_clash() -> None:
    first, second = summary("a", score_name="my_score"), summary("b", score_name="my-score")
    found = select_scorers((second, first))
    assert found.summaries == (first,)
    assert found.problems[0].reason == "DuplicateScore"
    assert "my-score" in found.problems[0].message
    assert "scorer a" in found.problems[0].message


def test_two_scorers_of_one_name_clash() -> None:
    first, second = summary("a", score_name="x"), summary("a", score_name="y")
    found = select_scorers((second, first))
    assert found.summaries == (first,)
    assert found.problems[0].reason == "DuplicateScorer"


A = summary("a", scoring_interval=30)
B = summary("b", scoring_interval=10)


@dataclass
class Script:
    """Plays events and notes every command with its time."""

    cluster: str = "cluster1"
    now: float = 1000.0
    state: RoundSchedule = field(init=False)
    commands: tuple[Command, ...] = ()
    started: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = RoundSchedule(self.cluster)

    def play(self, event: Event, at: float | None = None) -> tuple[Command, ...]:
        self.now = self.now if at is None else at
        self.state, self.commands = step(self.state, event, self.now)
        self.started += [(self.now, s.name) for s in starts(self.commands)]
        return self.commands

    @property
    def wake(self) -> float | None:
        return next((c.time for c in self.commands if isinstance(c, WakeAt)), None)

    def run(self, seconds: float, *, takes: float = 1.0, failed: bool = False) -> None:
        """Let time pass; every round ends `takes` seconds after its start."""
        end, ends = self.now + seconds, list[tuple[float, str]]()
        while True:
            ends += [(self.now + takes, s.name) for s in starts(self.commands)]
            times = [at for at, _ in ends] + ([] if self.wake is None else [self.wake])
            if not times or min(times) > end:
                break
            if ends and min(ends)[0] == min(times):
                at, name = min(ends)
                ends.remove((at, name))
                self.play(RoundFinished(name, failed), at)
            else:
                self.play(Tick(), min(times))
        self.now = end

    def times(self, name: str) -> list[float]:
        return [at for at, started in self.started if started == name]

    def gaps(self, name: str) -> list[float]:
        return [round(later - earlier, 6) for earlier, later in pairwise(self.times(name))]


def starts(commands: Sequence[Command]) -> list[ScorerSummary]:
    return [c.summary for c in commands if isinstance(c, StartRound)]


def probes(commands: Sequence[Command]) -> list[ScorerSummary]:
    return [c.summary for c in commands if isinstance(c, ProbeHealth)]


def stops(commands: Sequence[Command]) -> list[ScorerSummary]:
    return [c.summary for c in commands if isinstance(c, StopScorer)]


def begun(*summaries: ScorerSummary, cluster: str = "cluster1") -> Script:
    """A script in which the first round of every scorer runs."""
    script = Script(cluster)
    script.play(ConfigChanged(summaries))
    script.play(Tick(), script.now + SPREAD_SECONDS)
    return script


def test_the_first_round_starts_at_once_with_a_small_spread() -> None:
    script = Script()
    script.play(ConfigChanged((A,)))

    assert script.wake is not None
    assert 1000.0 <= script.wake <= 1000.0 + SPREAD_SECONDS
    assert starts(script.play(Tick(), script.wake)) == [A]


def test_the_spread_differs_from_cluster_to_cluster_and_is_stable() -> None:
    def first(cluster: str) -> float | None:
        script = Script(cluster)
        script.play(ConfigChanged((A,)))
        return script.wake

    assert len({first(f"cluster{n}") for n in range(20)}) == 20
    assert first("cluster1") == first("cluster1")


def test_rounds_follow_each_other_by_the_interval() -> None:
    script = begun(A)
    script.run(600)

    gaps = script.gaps("a")
    assert 15 <= gaps[0] <= 45
    assert gaps[1:] == [30.0] * len(gaps[1:])
    assert len(gaps) >= 18


def test_a_fleet_spreads_over_the_interval() -> None:
    """10,000 agents with one scorer every 30 s call its central API 333 times in a second."""
    calls = Counter[int]()
    for n in range(10_000):
        script = begun(A, cluster=f"cluster{n}")
        script.run(60)
        calls[int(script.times("a")[-1] % 30)] += 1
    assert len(calls) == 30
    assert (min(calls.values()), max(calls.values())) == (301, 368)


def test_a_round_longer_than_its_interval_skips_slots() -> None:
    script = begun(B)
    script.play(RoundFinished("b"), script.now + 34)
    assert script.wake is not None
    assert script.now <= script.wake <= script.now + 10


def test_a_shorter_interval_does_not_wait_for_the_longer_one_to_end() -> None:
    weekly = A.model_copy(update={"scoring_interval": 604_800})
    script = begun(weekly)
    script.play(RoundFinished("a"), script.now + 1)
    script.play(ConfigChanged((A,)), script.now + 1)

    assert script.wake is not None
    assert script.wake <= script.now + 30


def test_an_unchanged_summary_changes_nothing() -> None:
    script = begun(A)
    script.play(RoundFinished("a"), script.now + 1)
    before = script.wake
    script.play(ConfigChanged((A,)), script.now + 1)
    assert script.wake == before


def test_a_removed_scorer_stops() -> None:
    script = begun(A, B)
    script.play(RoundFinished("a"))
    script.play(RoundFinished("b"))

    assert stops(script.play(ConfigChanged((B,)))) == [A]
    assert scores(script.state) == {"b_score"}


def test_a_scorer_removed_during_its_round_stops_when_the_round_ends() -> None:
    script = begun(A)

    assert script.play(ConfigChanged(())) == ()
    assert scores(script.state) == {"a_score"}
    assert stops(script.play(RoundFinished("a"), script.now + 1)) == [A]
    assert scores(script.state) == set()


def test_a_scorer_that_comes_back_during_its_last_round_does_not_overlap() -> None:
    script = begun(A)
    script.play(ConfigChanged(()))
    assert starts(script.play(ConfigChanged((A,)))) == []

    assert stops(script.play(RoundFinished("a"), script.now + 1)) == []
    assert script.wake is not None
    assert starts(script.play(Tick(), script.wake)) == [A]


def test_a_renamed_score_leaves_the_old_one_behind() -> None:
    script = begun(A)
    renamed = A.model_copy(update={"score_name": "new_score"})

    assert stops(script.play(ConfigChanged((renamed,)))) == []
    assert stops(script.play(RoundFinished("a"), script.now + 1)) == [A]
    assert stops(script.play(ConfigChanged((A,)))) == [renamed]


def test_a_score_that_is_no_longer_published_is_left_behind() -> None:
    script = begun(A)
    script.play(RoundFinished("a"))
    metrics_only = A.model_copy(update={"score_destination": "None"})

    assert stops(script.play(ConfigChanged((metrics_only,)))) == [A]
    assert scores(script.state) == set()


def test_failures_double_the_pause_up_to_a_ceiling() -> None:
    script = begun(A)
    script.run(20_000, failed=True)

    gaps = script.gaps("a")
    assert set(gaps[1:]) == {CEILING_SECONDS}

    script = begun(B)
    script.run(20_000, failed=True)
    assert script.gaps("b")[1:4] == [20.0, 40.0, 60.0]
    assert max(script.gaps("b")) == CEILING_SECONDS


def test_a_success_ends_the_back_off() -> None:
    script = begun(A)
    script.run(3_000, failed=True)
    script.run(400)
    assert script.gaps("a")[-1] == 30.0


def test_a_changed_summary_ends_the_back_off() -> None:
    script = begun(A)
    script.run(3_000, failed=True)
    mended = A.model_copy(update={"source_query": "right"})
    script.play(ConfigChanged((mended,)))
    assert script.wake is not None
    assert script.wake <= script.now + 30


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, retry_after=700), script.now + 1)
    assert script.wake is not None
    assert 700 <= script.wake - script.now <= 730


def test_a_pause_that_is_asked_for_has_a_ceiling_too() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, retry_after=1e9), script.now + 1)
    assert script.wake is not None
    assert script.wake - script.now <= RETRY_AFTER_SECONDS + 30


def test_a_changed_summary_ends_a_pause_that_was_asked_for() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, retry_after=700), script.now + 1)
    script.play(ConfigChanged((A.model_copy(update={"source_query": "right"}),)))
    assert script.wake is not None
    assert script.wake <= script.now + 30


def settling(script: Script) -> list[ScorerSummary]:
    return [c.summary for c in script.commands if isinstance(c, ApplyOnFailure)]


def test_expiring_scores_are_settled_between_rounds() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, retry_after=700, on_failure_in=40), script.now + 1)
    assert script.wake == script.now + 40
    script.play(Tick(), script.wake)
    assert (settling(script), script.times("a")) == ([A], script.times("a")[:1])

    script.play(OnFailureApplied("a", on_failure_in=45), script.now + 1)
    assert script.wake == script.now + 45


def test_a_round_is_not_started_while_scores_are_settled() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, on_failure_in=5), script.now + 1)
    script.play(Tick(), script.now + 5)
    assert settling(script) == [A]
    assert starts(script.play(Tick(), script.now + 400)) == []
    assert starts(script.play(OnFailureApplied("a"), script.now + 1)) == [A]


def test_a_round_settles_what_is_due_with_it() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, on_failure_in=30), script.now + 1)
    script.play(Tick(), script.now + 400)
    assert (starts(script.commands), settling(script)) == ([A], [])
    script.play(RoundFinished("a"), script.now + 1)
    assert script.state.scorers["a"].on_failure_due == float("inf")


def test_a_scorer_removed_while_its_scores_are_settled_stops_then() -> None:
    script = begun(A)
    script.play(RoundFinished("a", failed=True, on_failure_in=5), script.now + 1)
    script.play(Tick(), script.now + 5)
    assert script.play(ConfigChanged(())) == ()
    assert stops(script.play(OnFailureApplied("a", on_failure_in=5), script.now + 1)) == [A]
    assert script.wake is None


def test_settling_keeps_the_back_off() -> None:
    script = begun(A)
    script.run(3_000, failed=True)
    due, failures = script.state.scorers["a"].due, script.state.scorers["a"].failures
    state = script.state
    running = {"a": replace(state.scorers["a"], running=A)}
    script.state = RoundSchedule(state.cluster, running)
    script.play(OnFailureApplied("a", on_failure_in=10))
    assert (script.state.scorers["a"].due, script.state.scorers["a"].failures) == (due, failures)


@dataclass
class Outage(Script):
    """A scoring API with two doors: rounds fail unless it scores, probes unless it is healthy."""

    scores_from: float = math.inf
    healthy_from: float = math.inf
    retry_after: float | None = None
    probed: list[float] = field(default_factory=list)

    def until(self, end: float) -> None:
        """Let time pass; a round takes a second, and a probe ends at once."""
        while self.now <= end:
            if probes(self.commands):
                self.probed.append(self.now)
                self.play(ProbeFinished("b", self.now >= self.healthy_from))
            elif starts(self.commands):
                failed = 2000 <= self.now < self.scores_from
                ended = RoundFinished("b", failed, self.retry_after, outage=failed)
                self.play(ended, self.now + 1)
            else:
                self.play(Tick(), self.wake)


def outage(summary_: ScorerSummary, **changes: Any) -> Outage:
    script = Outage(**changes)
    script.play(ConfigChanged((summary_,)))
    script.until(10_000)
    return script


@given(
    st.integers(1, 300), st.floats(2000, 4000), st.sampled_from([f"cluster{n}" for n in range(9)])
)
def test_rounds_resume_within_one_interval_of_a_recovery(
    interval: int, back: float, cluster: str
) -> None:
    scorer = B.model_copy(update={"scoring_interval": interval})
    script = outage(scorer, cluster=cluster, healthy_from=back, scores_from=back)
    resumed = min(at for at in script.times("b") if at >= back)
    one_round, probe_apart = 1.0, interval if interval >= PROBE_SECONDS else PROBE_SECONDS + 1
    assert resumed - back <= max(interval, probe_apart) + one_round


def test_an_api_that_is_down_is_probed_at_most_once_an_interval() -> None:
    script = outage(B)
    calls = sorted([*script.probed, *[at for at in script.times("b") if at > 2000]])
    assert len(script.probed) > 600
    assert min(later - earlier for earlier, later in pairwise(calls)) >= 5.0
    assert len(calls) <= 8000 / B.scoring_interval + 1


def test_short_intervals_are_probed_every_few_seconds_only() -> None:
    script = outage(B.model_copy(update={"scoring_interval": 1}))
    assert PROBE_SECONDS == 5
    shortest = min(later - earlier for earlier, later in pairwise(script.probed))
    assert PROBE_SECONDS - 0.5 <= shortest <= PROBE_SECONDS + 0.5


@given(st.integers(5, 300), st.floats(2000, 4000))
def test_where_health_says_nothing_about_scoring_rounds_take_the_place_of_probes(
    interval: int, back: float
) -> None:
    scorer = B.model_copy(update={"scoring_interval": interval})
    script = outage(scorer, healthy_from=0.0, scores_from=back)
    asked = [at for at in script.times("b") if 2000 < at < back]
    assert len(script.probed) <= 1
    assert len(asked) <= (back - 2000) / interval + 3
    assert min(at for at in script.times("b") if at >= back) - back <= interval + 1


def test_an_api_that_warms_up_after_its_health_is_asked_soon_again() -> None:
    script = outage(B, healthy_from=4000.0, scores_from=4015.0)
    assert min(at for at in script.times("b") if at >= 4015) <= 4015 + 2 * B.scoring_interval


def test_nobody_is_probed_while_a_server_has_asked_for_a_pause() -> None:
    script = outage(B, healthy_from=0.0, retry_after=600.0)
    rounds = [at for at in script.times("b") if at > 2000]
    assert script.probed == []
    assert min(later - earlier for earlier, later in pairwise(rounds)) >= 600


def test_a_probe_that_is_asked_to_wait_waits() -> None:
    script = begun(B)
    for _ in range(5):
        script.play(RoundFinished("b", failed=True, outage=True), script.now + 1)
        while not starts(script.commands) and not probes(script.commands):
            assert script.wake is not None
            script.play(Tick(), script.wake)
        if probes(script.commands):
            break
    asked = script.now
    script.play(ProbeFinished("b", healthy=False, retry_after=400))
    assert script.wake is not None
    assert 400 <= script.wake - asked <= 410


def test_the_late_answer_of_a_probe_starts_no_second_round() -> None:
    script = begun(B)
    script.play(RoundFinished("b", failed=True, outage=True), script.now + 1)
    script.play(Tick(), script.now + 20)
    assert [one.name for one in starts(script.commands)] == ["b"]
    before = script.state
    script.play(ProbeFinished("b", healthy=True))
    assert script.state == before


def test_failures_that_are_no_outage_are_not_probed() -> None:
    script = begun(B)
    script.run(3_000, failed=True)
    assert script.state.scorers["b"].probe_due == math.inf


def test_a_pause_is_known_until_its_round_starts() -> None:
    script = begun(B)
    assert paused_until(script.state) == {}
    script.play(RoundFinished("b", failed=True), script.now + 1)
    assert paused_until(script.state) == {}
    script.play(RoundFinished("b", failed=True, retry_after=300), script.now + 1)
    script.play(Tick(), script.now + 15)
    script.play(RoundFinished("b", failed=True, retry_after=300), script.now + 1)
    assert paused_until(script.state) == {"b_score": script.wake}
    assert script.wake is not None
    script.play(Tick(), script.wake)
    assert paused_until(script.state) == {}


def test_people_read_when_a_scorer_is_tried_again() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert pause_remark(B, None, now) == "the agent tries again within 60 s"
    assert pause_remark(B, 30, now) == "the agent tries again within 60 s"
    asked = pause_remark(B, 600, now)
    assert asked == "the server asked for a pause until 2026-01-01T00:10:00Z"


def test_an_interval_longer_than_the_ceiling_is_kept_while_failing() -> None:
    hourly = A.model_copy(update={"scoring_interval": 3600})
    script = begun(hourly)
    script.run(40_000, failed=True)
    assert set(script.gaps("a")[1:]) == {3600.0}


def test_a_push_makes_the_next_round_due_now_and_keeps_the_grid() -> None:
    script = begun(A)
    script.run(40)
    assert starts(script.play(Pushed("a"))) == [A]
    pushed = script.now
    script.run(90)
    script.run(60)
    assert script.gaps("a")[-2:] == [30.0, 30.0]
    after = min(at for at in script.times("a") if at > pushed)
    assert 15 <= after - pushed <= 45


def test_pushes_during_a_round_make_one_more() -> None:
    script = begun(A)
    for _ in range(3):
        assert starts(script.play(Pushed("a"), script.now + 1)) == []
    assert starts(script.play(RoundFinished("a"), script.now + 1)) == [A]
    assert starts(script.play(RoundFinished("a"), script.now + 1)) == []


def test_a_push_survives_a_changed_scorer_and_the_application_of_on_failure() -> None:
    changed = A.model_copy(update={"source_query": "other"})
    script = begun(A)
    script.play(Pushed("a"))
    script.play(ConfigChanged((changed,)))
    assert starts(script.play(RoundFinished("a", failed=True), script.now + 1)) == [changed]

    script = begun(A)
    script.play(RoundFinished("a", failed=True, on_failure_in=5), script.now + 1)
    script.play(Tick(), script.now + 5)
    assert starts(script.play(Pushed("a"))) == []
    assert starts(script.play(OnFailureApplied("a"), script.now + 1)) == [A]


def test_no_push_shortens_a_pause() -> None:
    script = begun(A)
    script.play(Pushed("a"))
    script.play(RoundFinished("a", failed=True, retry_after=20), script.now + 1)
    assert starts(script.commands) == []
    assert (pause_left(script.state, "a", script.now), script.times("a")[1:]) == (20, [])
    assert starts(script.play(Pushed("a"), script.now + 10)) == []
    assert starts(script.play(Pushed("a"), script.now + 10)) == [A]

    script = begun(B)
    script.run(3_000, failed=True)
    assert script.wake is not None
    assert pause_left(script.state, "b", script.now) == script.wake - script.now
    assert starts(script.play(Pushed("b"))) == []


def test_a_push_of_nobody_changes_nothing() -> None:
    script = begun(A)
    before = script.state
    script.play(Pushed("nobody"))
    assert script.state == before
    assert pause_left(before, "nobody", script.now) == 0


POOL = (A, B, A.model_copy(update={"source_query": "other"}), summary("c", scoring_interval=1))
EVENTS = st.one_of(
    st.lists(st.sampled_from(POOL), unique_by=lambda s: s.name).map(
        lambda chosen: ConfigChanged(tuple(chosen))
    ),
    st.builds(
        RoundFinished,
        st.sampled_from(["a", "b", "c"]),
        st.booleans(),
        st.none() | st.floats(0, 1e9),
        st.none() | st.floats(0, 1000),
        st.booleans(),
    ),
    st.builds(
        ProbeFinished,
        st.sampled_from(["a", "b", "c"]),
        st.booleans(),
        st.none() | st.floats(0, 1e9),
    ),
    st.builds(OnFailureApplied, st.sampled_from(["a", "b", "c"]), st.none() | st.floats(0, 1000)),
    st.builds(Pushed, st.sampled_from(["a", "b", "c"])),
    st.just(Tick()),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 400)), max_size=40))
def test_whatever_happens(script: list[tuple[Event, float]]) -> None:
    state, now = RoundSchedule("cluster1"), 0.0
    wanted: dict[str, ScorerSummary] = {}
    running: dict[str, ScorerSummary] = {}
    asked: dict[str, float] = {}
    for event, passed in script:
        now += passed
        state, commands = step(state, event, now)
        if isinstance(event, ConfigChanged):
            before, after = wanted, {s.name: s for s in event.summaries}
            asked = {name: at for name, at in asked.items() if before.get(name) == after.get(name)}
            wanted = {s.name: s for s in event.summaries}
        elif isinstance(event, RoundFinished | OnFailureApplied):
            ran = running.pop(event.scorer, None)
            if isinstance(event, RoundFinished) and event.failed and ran:
                pause = min(event.retry_after or 0, RETRY_AFTER_SECONDS)
                asked[event.scorer] = now + pause if ran == wanted.get(event.scorer) else now
        for stopped in stops(commands):
            assert stopped.name not in running
            assert stopped.name not in wanted or wanted[stopped.name] != stopped
        begun_ = [c.summary for c in commands if isinstance(c, StartRound | ApplyOnFailure)]
        for started in begun_:
            assert started.name not in running
            assert wanted[started.name] == started
            running[started.name] = started
        for started in starts(commands):
            assert now >= asked.get(started.name, 0)

        idle = [s for name, s in wanted.items() if name not in running]
        wakes = [c.time for c in commands if isinstance(c, WakeAt)]
        assert len(wakes) == bool(idle)
        for summary_ in idle:
            interval = summary_.scoring_interval
            due = state.scorers[summary_.name].due
            assert wakes[0] <= due
            assert now < due <= now + max(RETRY_AFTER_SECONDS, interval) + 2 * interval
        assert set(state.scorers) == wanted.keys() | running.keys()
