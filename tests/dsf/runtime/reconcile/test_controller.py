"""The control loop, in virtual time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from dsf.kube.errors import Invalid, ServerError, TooManyRequests
from dsf.runtime.backoff import Backoff
from dsf.runtime.reconcile.controller import Controller, WorkQueue

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
