"""Run a coroutine as a process that stops on SIGTERM and SIGINT."""

import asyncio
import gc
import signal
from collections.abc import Coroutine
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)
START_SECONDS = 3.0
"""Time after which the garbage collector looks for garbage, and only in what was made since."""


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` until it ends, or until SIGTERM or SIGINT cancels it, which is not an error.

    If task groups wrap errors of one kind only, the first of them is raised itself.
    """
    try:
        asyncio.run(_until_signalled(main))
    except BaseExceptionGroup as group:
        raise _first_of_one_kind(group) from None


async def _until_signalled(main: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    loop.call_later(START_SECONDS, collect_what_is_new)
    try:
        await task
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise


def collect_what_is_new() -> None:
    """Let the garbage collector look for garbage, in what is made from now on."""
    gc.freeze()
    gc.enable()


def _first_of_one_kind(group: BaseExceptionGroup) -> BaseException:
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    _, others = group.split(type(first))
    return group if others else first
