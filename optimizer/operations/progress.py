"""How far the solving of a plan is, told to a caller who waits: value, bound and seconds."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import TypeVar

from pydantic import Field

from optimizer.domain.solution import Solution
from optimizer.operations.access.caller import Caller
from optimizer.plan.text.approval_questions import possible_gain
from optimizer.wire.base import ResultPart, Sentence

T = TypeVar("T")

TOLD_EVERY_SECONDS = 1.0
"""Pause between two reports; what is answered sooner needs none."""


class PlanProgress(ResultPart):
    """The best decision that is known while a plan is made."""

    seconds: float = Field(description="Since the question.")
    objective_value: float | None = Field(description="Of the best decision; null: none yet.")
    bound: float | None = Field(description="No plan is worth more than this; null: no bound yet.")
    message: Sentence = Field(description="The same in words.")


async def progress_of(
    task: "asyncio.Task[T]", caller: Caller, what: str = "Planning"
) -> AsyncIterator[PlanProgress]:
    """Yield each second how far the plan of a caller is, until the task that makes it has ended."""
    started = monotonic()
    while not (await asyncio.wait({task}, timeout=TOLD_EVERY_SECONDS))[0]:
        seconds, best = monotonic() - started, caller.best
        yield PlanProgress(
            seconds=seconds,
            objective_value=best and best.objective_value,
            bound=best and best.bound,
            message=f"{what}: {seconds:.0f} s{best_so_far(best) if best else ''}",
        )


def best_so_far(solution: Solution) -> str:
    """Return how good a decision is, to follow the seconds that it took."""
    more = f", {possible_gain(solution)} is possible" if solution.gap is not None else ""
    return f"; the best so far is worth {solution.objective_value:g}{more}"
