"""The work queue of a controller: due times, and a back-off for each name."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from dsf.kube.errors import ServerError, TooManyRequests, Unreachable
from dsf.runtime.backoff import AWAY, Backoff
from dsf.runtime.reconcile.controller import DueTimes, WorkQueue

BUSY = TooManyRequests("busy")


def test_delays_double_up_to_the_ceiling() -> None:
    delays = [Backoff(0.5, 300).delay(failures, 0.0) for failures in (1, 2, 3, 10, 11, 10_000)]
    assert delays == [0.5, 1, 2, 256, 300, 300]


@given(
    failures=st.integers(1, 10_000),
    draw=st.floats(0, 1, exclude_max=True),
    base=st.floats(0.01, 10),
    factor=st.floats(1, 1000),
)
def test_jitter_takes_away_half_at_most(
    failures: int, draw: float, base: float, factor: float
) -> None:
    backoff = Backoff(base, base * factor)
    whole = backoff.delay(failures, 0.0)
    assert whole / 2 <= backoff.delay(failures, draw) <= whole <= backoff.ceiling


class ScheduleMachine(RuleBasedStateMachine):
    """The schedule against a model of it: a plain dictionary of due times."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.schedule = DueTimes()
        self.due: dict[str, float] = {}
        self.rests: dict[str, float] = {}
        self.active: set[str] = set()
        self.now = 0.0

    def free(self) -> dict[str, float]:
        return {key: at for key, at in self.due.items() if key not in self.active}

    @rule(key=st.sampled_from("abcd"), after=st.integers(0, 5))
    def add(self, key: str, after: int) -> None:
        at = self.now + after
        self.schedule.add(key, at)
        self.due[key] = max(min(at, self.due.get(key, at)), self.rests.get(key, 0.0))

    @rule(key=st.sampled_from("abcd"), seconds=st.integers(1, 5))
    def rest(self, key: str, seconds: int) -> None:
        until = self.now + seconds
        self.schedule.rest(key, until)
        self.rests[key] = until
        if key in self.due:
            self.due[key] = max(self.due[key], until)

    @rule(seconds=st.integers(1, 3))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        key = self.schedule.take(self.now)
        ready = {k: at for k, at in self.free().items() if at <= self.now}
        if key is None:
            assert not ready
        else:
            assert ready[key] == min(ready.values())
            del self.due[key]
            self.rests.pop(key, None)
            self.active.add(key)

    @rule(key=st.sampled_from("abcd"))
    def done(self, key: str) -> None:
        self.schedule.done(key)
        self.active.discard(key)

    @invariant()
    def shows_what_comes_next(self) -> None:
        assert self.schedule.next_at() == min(self.free().values(), default=None)
        assert len(self.schedule) == len(self.due)


TestSchedule = ScheduleMachine.TestCase


@pytest.mark.virtual_time
async def test_the_queue_hands_out_a_name_once_however_often_it_was_added() -> None:
    queue = WorkQueue()
    for _ in range(3):
        queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


@pytest.mark.virtual_time
async def test_a_name_added_during_the_work_comes_again_but_not_before_it_is_done() -> None:
    queue = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 3600)
    queue.done("a")
    assert await queue.get() == "a"


@pytest.mark.virtual_time
async def test_a_delayed_name_comes_when_it_is_due_and_an_earlier_time_wins() -> None:
    queue, loop = WorkQueue(), asyncio.get_running_loop()
    queue.add("a", after=600)
    getting = asyncio.create_task(queue.get())
    await asyncio.sleep(100)
    queue.add("a", after=200)
    await getting
    assert loop.time() == 300


@pytest.mark.virtual_time
async def test_the_back_off_of_a_name_grows_with_its_failures_and_ends_with_forget() -> None:
    queue = WorkQueue(Backoff(1, 300), draw=lambda: 0.0)
    assert [queue.retry("a", BUSY) for _ in range(3)] == [1, 2, 4]
    assert queue.retry("b", BUSY) == 1
    assert queue.retry("b", BUSY, at_least=30) == 30
    queue.forget("a")
    assert queue.retry("a", BUSY) == 1


@pytest.mark.virtual_time
async def test_a_server_that_was_away_for_long_is_asked_again_soon() -> None:
    queue = WorkQueue(Backoff(1, 300), draw=lambda: 0.0)
    away = [queue.retry("a", Unreachable("refused")) for _ in range(100)]
    assert max(away) == AWAY.ceiling == 2
    starting = ServerError("the API server is starting")
    assert [queue.retry("a", starting) for _ in range(3)] == [1, 2, 4]
