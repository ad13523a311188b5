"""Rollouts on an OCM that does everything as late as it likes, interrupted anywhere."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.domain.fleet import Fleet
from optimizer.domain.settings import DEFAULTS
from optimizer.domain.solution import Decision, unlimited
from optimizer.follow.rollout import rollout_steps
from optimizer.follow.rollout.next_step import RolloutProgress, located, next_move, turned_back
from optimizer.follow.rollout.rollout_state import RolloutState, states_of
from optimizer.follow.rollout.rollout_steps import rollout_plan
from optimizer.model.formulate import formulate
from optimizer.plan.generated_objects import changes
from optimizer.plan.manifests import manifests
from optimizer.solve.strategy import solve_problem
from optimizer.wire.plan_record import RolloutPace, RolloutPlan
from optimizer.wire.request_problem import RequestProblem
from tests.optimizer.follow.rollout.lagging_ocm import LaggingOcm, not_idle, started
from tests.optimizer.random_problems import draw_fleet

MOST_TICKS = 300
"""Far more than any drawn rollout takes."""


@dataclass
class Walk:
    """One rollout, driven until it ends."""

    plan: RolloutPlan
    ocm: LaggingOcm
    goal: Decision
    progress: RolloutProgress = field(default_factory=RolloutProgress)
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = states_of(self.plan)
        first, last = (
            Counter(item.workload for item in state.replicas)
            for state in (self.states[0], self.states[-1])
        )
        self.needed = first & last
        self.names = {item.workload for state in self.states for item in state.replicas}

    def turn(self) -> None:
        """Make one move, of whose writes only some are made: the server may be killed."""
        move = next_move(
            self.plan, self.states, self.progress, self.ocm.facts(self.names), self.ocm.now
        )
        self.progress = move.progress
        if move.note == "StepWritten":
            assert not not_idle(self.ocm, *self.around)
        made = self.ocm.drawn.randint(0, len(move.changes))
        for change in move.changes[: made + 1]:
            self.ocm.write(change)
            self.check()

    def check(self) -> None:
        """Fail if a workload runs on fewer clusters than the plan said."""
        short = self.needed - Counter(item.workload for item in self.ocm.running())
        assert set(short) <= self.around[0].uncovered | self.around[1].uncovered

    @property
    def around(self) -> tuple[RolloutState, RolloutState]:
        """The states that are left and made."""
        return self.states[self.progress.source], self.states[self.progress.target]

    def run(self) -> None:
        """Drive the rollout to its end."""
        for _ in range(MOST_TICKS):
            self.turn()
            if self.progress.ended:
                return
            self.ocm.tick()
            self.check()
        pytest.fail(f"not ended: {self.progress}")


def drawn_walk(seed: int) -> Walk:
    """A rollout between the best decisions for two scores."""
    drawn = random.Random(seed)  # noqa: S311 - to repeat, not to guard
    fleet = draw_fleet(drawn, clusters=3, workloads=4)
    first = _best(_with_current(_preferring(fleet, "speed"), Decision()))
    now = _with_current(_preferring(fleet, "power"), first)
    made = manifests(now, first, claim_name=DEFAULTS.claim_name)
    return walk_to(_best(now), now, started(now, made, drawn))


def walk_to(goal: Decision, now: Fleet, ocm: LaggingOcm) -> Walk:
    found = planned(goal, now, ocm)
    assert isinstance(found, RolloutPlan)
    return Walk(found, ocm, goal)


def planned(goal: Decision, now: Fleet, ocm: LaggingOcm) -> RolloutPlan | RequestProblem:
    return rollout_plan(
        ocm.observation(),
        now,
        formulate(now),
        goal,
        manifests(now, goal, claim_name=DEFAULTS.claim_name),
        kept=frozenset(),
        uncovers={},
        pace=RolloutPace(),
        settings=DEFAULTS,
        time_left=unlimited,
    )


def _preferring(fleet: Fleet, score: str) -> Fleet:
    return replace(
        fleet, objectives=tuple(replace(item, score=score) for item in fleet.objectives[:1])
    )


def _best(fleet: Fleet) -> Decision:
    return solve_problem(formulate(fleet), solver="highs", time_limit_seconds=10).decision


def _with_current(fleet: Fleet, decision: Decision) -> Fleet:
    enforced = set(decision.policies)
    return replace(
        fleet,
        clusters=tuple(
            replace(
                cluster,
                candidates=tuple(
                    replace(item, current=(cluster.name, item.policy) in enforced)
                    for item in cluster.candidates
                ),
            )
            for cluster in fleet.clusters
        ),
        workloads=tuple(
            replace(item, current=tuple(_clusters(decision, item.name))) for item in fleet.workloads
        ),
    )


def _clusters(decision: Decision, workload: str) -> Iterator[str]:
    return (item.cluster for item in decision.assignments if item.workload == workload)


@given(st.integers(0, 10**6), st.integers(0, 60))
def test_a_rollout_ends_at_its_goal_or_its_start_and_uncovers_nothing_else(
    seed: int, at: int
) -> None:
    """It is turned back after some ticks, if it has not ended by then."""
    walk = drawn_walk(seed)
    turned = seed % 2 == 1
    for _ in range(at if turned else MOST_TICKS):
        walk.turn()
        if walk.progress.ended:
            break
        walk.ocm.tick()
        walk.check()
    turned = turned and not walk.progress.ended
    if turned:
        walk.progress = turned_back(walk.progress, walk.ocm.now)
        walk.run()
    assert walk.progress.phase == ("TurnedBack" if turned else "Complete")
    _is_at(walk, walk.states[0 if turned else -1])
    _times_tell_the_way(walk)


@given(st.integers(0, 10**6), st.integers(0, 20), st.integers(-2, 9), st.integers(-2, 9))
def test_a_progress_that_was_edited_is_put_where_the_objects_are(
    seed: int, ticks: int, source: int, target: int
) -> None:
    walk = drawn_walk(seed)
    for tick in range(ticks):
        if seed % 2 and 2 * tick >= ticks and not walk.progress.ended:
            walk.progress = turned_back(walk.progress, walk.ocm.now)
        walk.turn()
        walk.ocm.tick()
    last, there = len(walk.states) - 1, walk.ocm.observation()
    assert located(walk.plan, walk.states, walk.progress, there) == walk.progress
    edited = replace(walk.progress, source=source, target=target)
    found = located(walk.plan, walk.states, edited, there)
    neighbours = (found.source, found.target)
    assert 0 <= min(neighbours) <= max(neighbours) <= min(last, min(neighbours) + 1)
    differing = [
        {(change.kind, change.name) for change in changes(state.objects.values(), there, "default")}
        for state in (walk.states[each] for each in neighbours)
    ]
    assert not set.intersection(*differing)
    nowhere = replace(there, placements=(), bindings=())
    if all(changes(state.objects.values(), nowhere, "default") for state in walk.states):
        lost = located(walk.plan, walk.states, edited, nowhere)
        legal = {source, target} <= {*range(last + 1)} and abs(source - target) <= 1
        at = sorted((0, source, last))[1]
        assert (lost.source, lost.target) == ((source, target) if legal else (at, at))


def test_steps_that_a_record_can_not_keep_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_steps, "MAX_STEPS_CHARACTERS", 10)
    fleet = _preferring(draw_fleet(random.Random(1), clusters=3, workloads=4), "speed")  # noqa: S311
    found = planned(_best(fleet), fleet, started(fleet, (), random.Random(1)))  # noqa: S311
    assert isinstance(found, RequestProblem)
    assert (found.status, found.reason) == (422, "RolloutTooLarge")


def _times_tell_the_way(walk: Walk) -> None:
    """Forward each step once from the first on, back each of them once, one after the other."""
    times = walk.progress.step_times
    ahead = [item.step for item in times if not item.back]
    back = [item.step for item in times if item.back]
    assert ahead == [*range(1, len(ahead) + 1)]
    assert back in ([], ahead[::-1])
    moments = [at for item in times for at in (item.began, item.ended)]
    assert None not in moments
    assert moments == sorted(moments, key=str)


def _is_at(walk: Walk, state: RolloutState) -> None:
    assert changes(state.objects.values(), walk.ocm.observation(), "default") == ()
    walk.ocm.settle()
    assert walk.ocm.running() >= state.replicas
