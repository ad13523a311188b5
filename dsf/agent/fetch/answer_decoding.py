"""Decodes answers within reserved memory, and large ones outside the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from dsf.agent.failure import Failure, Stage
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.http_exchange import CallDeadline, late
from dsf.agent.wire.http_answer import display_url

INLINE_BYTES = 1 << 16
"""Larger data is processed in a thread: decoding it may delay other rounds by milliseconds."""

T = TypeVar("T")


async def decode_within(
    decode: Callable[[], T],
    *,
    memory: int,
    kept: Callable[[T], int],
    stage: Stage,
    url: str,
    deadline: CallDeadline,
    reservation: AnswerReservation | None,
) -> T | Failure:
    """Reserve `memory` bytes, decode, and keep the bytes that `kept` returns for the result."""
    if reservation is None:
        return await off_loop(decode, memory)
    size = 0
    try:
        async with asyncio.timeout_at(deadline.at):
            await reservation.read(memory)
        decoded = await off_loop(decode, memory)
        size = kept(decoded)
    except TimeoutError:
        return Failure(stage, *late(display_url(url), deadline, reservation))
    finally:
        reservation.keep(size)
    return decoded


async def off_loop(work: Callable[[], T], size: int) -> T:
    """Return the result of `work`, which runs in a thread if it has many bytes to process."""
    return work() if size <= INLINE_BYTES else await asyncio.to_thread(work)
