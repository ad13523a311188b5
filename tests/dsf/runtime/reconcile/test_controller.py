"""The control loop and its work queue, in virtual time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from prometheus_client import CollectorRegistry

from dsf.kube.errors import Invalid, ServerError, TooManyRequests, Unreachable
from dsf.runtime.backoff import AWAY, Backoff
from dsf.runtime.reconcile.controller import Controller, DueTimes, WorkQueue

pytestmark = pytest.mark.virtual_time


@asynccontextmanager
async def running(
    reconcile: Callable[[str], Awaitable[float | None]], *, workers: int = 1
) -> AsyncIterator[Controller]:
    queue = WorkQueue(Backoff(1, 300), draw=lambda: 0.0)
    controller = Controller(
        "test", reconcile, workers=workers, queue=queue, registry=CollectorRegistry()
    )
    task = asyncio.create_task(controller.run())
    yield controller
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_reconciler_is_called_again_after_the_time_it_asked_for() -> None:
    calls: list[tuple[str, float]] = []

    async def reconcile(name: str) -> float | None:
        calls.append((name, now()))
        return 60 if len(calls) < 3 else None

    async with running(reconcile) as controller:
        controller.enqueue("a")
        await asyncio.sleep(1000)
    assert calls == [("a", 0), ("a", 60), ("a", 120)]


async def test_a_retryable_error_leads_to_growing_delays_and_success_ends_them() -> None:
    calls: list[float] = []

    async def reconcile(name: str) -> None:
        calls.append(now())
        if len(calls) in (1, 2, 3, 5):
            raise ServerError("busy")

    async with running(reconcile) as controller:
        controller.enqueue("a")
        await asyncio.sleep(100)
        controller.enqueue("a")
        await asyncio.sleep(100)
    assert calls == [0, 1, 3, 7, 100, 101]


async def test_what_retrying_does_not_mend_is_tried_again_at_the_longest_delay() -> None:
    calls: list[float] = []

    async def reconcile(name: str) -> None:
        calls.append(now())
        raise Invalid("spec.x: Required value")

    async with running(reconcile) as controller:
        controller.enqueue("a")
        await asyncio.sleep(700)
    assert calls == [0, 300, 600]


async def test_the_delay_that_a_server_asks_for_is_kept() -> None:
    calls: list[float] = []

    async def reconcile(name: str) -> None:
        calls.append(now())
        if len(calls) == 1:
            raise TooManyRequests("busy", details={"retryAfterSeconds": 42})

    async with running(reconcile) as controller:
        controller.enqueue("a")
        await asyncio.sleep(100)
    assert calls == [0, 42]


async def test_a_reconciler_that_breaks_on_one_name_goes_on_with_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    async def reconcile(name: str) -> None:
        if name == "bad":
            raise ZeroDivisionError
        done.append(name)

    with caplog.at_level(logging.ERROR):
        async with running(reconcile) as controller:
            controller.enqueue("bad")
            controller.enqueue("good")
            await asyncio.sleep(0.5)
    assert done == ["good"]
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_no_name_is_worked_on_twice_at_a_time_but_different_ones_are() -> None:
    active: list[str] = []
    most: dict[str, int] = {"same": 0, "all": 0}

    async def reconcile(name: str) -> None:
        active.append(name)
        most["same"] = max(most["same"], active.count(name))
        most["all"] = max(most["all"], len(active))
        await asyncio.sleep(10)
        active.remove(name)

    async with running(reconcile, workers=4) as controller:
        for second in range(50):
            controller.enqueue(f"n{second % 3}")
            await asyncio.sleep(1)
        await asyncio.sleep(100)
    assert most == {"same": 1, "all": 3}


async def test_results_and_depth_are_counted() -> None:
    registry = CollectorRegistry()

    async def reconcile(name: str) -> None:
        if name == "bad":
            raise ServerError("busy")

    controller = Controller("c", reconcile, registry=registry)
    controller.enqueue("later", after=9999)
    controller.enqueue("good")
    controller.enqueue("bad")
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(0.1)
    task.cancel()

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"controller": "c", **labels})

    assert sample("dsf_reconcile_total", result="success") == 1
    assert sample("dsf_reconcile_total", result="error") == 1
    assert sample("dsf_reconcile_seconds_count") == 2
    assert sample("dsf_queue_depth") == 2


async def test_a_busy_server_is_left_alone_whatever_the_news() -> None:
    calls: list[float] = []

    async def reconcile(name: str) -> None:
        calls.append(now())
        controller.enqueue(name)
        if now() < 100:
            raise TooManyRequests("busy", details={"retryAfterSeconds": 60})
        await asyncio.Event().wait()

    async with running(reconcile) as controller:
        controller.enqueue("a")
        for _ in range(200):
            await asyncio.sleep(1)
            controller.enqueue("a")
    assert calls == [0, 60, 120]


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


async def test_the_queue_hands_out_a_name_once_however_often_it_was_added() -> None:
    queue = WorkQueue()
    for _ in range(3):
        queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_name_added_during_the_work_comes_again_but_not_before_it_is_done() -> None:
    queue = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 3600)
    queue.done("a")
    assert await queue.get() == "a"


async def test_a_delayed_name_comes_when_it_is_due_and_an_earlier_time_wins() -> None:
    queue, loop = WorkQueue(), asyncio.get_running_loop()
    queue.add("a", after=600)
    getting = asyncio.create_task(queue.get())
    await asyncio.sleep(100)
    queue.add("a", after=200)
    await getting
    assert loop.time() == 300


async def test_the_back_off_of_a_name_grows_with_its_failures_and_ends_with_forget() -> None:
    queue = WorkQueue(Backoff(1, 300), draw=lambda: 0.0)
    assert [queue.retry("a", BUSY) for _ in range(3)] == [1, 2, 4]
    assert queue.retry("b", BUSY) == 1
    assert queue.retry("b", BUSY, at_least=30) == 30
    queue.forget("a")
    assert queue.retry("a", BUSY) == 1


async def test_a_server_that_was_away_for_long_is_asked_again_soon() -> None:
    queue = WorkQueue(Backoff(1, 300), draw=lambda: 0.0)
    away = [queue.retry("a", Unreachable("refused")) for _ in range(100)]
    assert max(away) == AWAY.ceiling == 2
    starting = ServerError("the API server is starting")
    assert [queue.retry("a", starting) for _ in range(3)] == [1, 2, 4]
