"""How many moves are left: what budgets allow, less the moves within their periods."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from optimizer.wire.keeping import MoveBudget, MoveReason


@dataclass(frozen=True, slots=True)
class PastChange:
    """A change that was applied: when, its moves by reason, and whether it was a rollback."""

    time: datetime
    moves: Mapping[MoveReason, int] = field(default_factory=dict)
    rolled_back: bool = False


class MovesLeft(NamedTuple):
    """What a budget leaves of moves for some reasons, and when there is more of it again.

    `more_at`: when the oldest move that counts is a period ago, or the budget's window ends; None
    if neither comes.
    """

    budget: MoveBudget
    moves: int
    more_at: datetime | None

    @property
    def reasons(self) -> tuple[MoveReason, ...]:
        """Why replicas leave whose moves count."""
        return self.budget.reasons


def moves_left(
    budgets: Iterable[MoveBudget], history: Sequence[PastChange], running: int, now: datetime
) -> tuple[MovesLeft, ...]:
    """Return what each budget that counts now leaves, if so many replicas run."""
    return tuple(_left(item, history, running, now) for item in budgets if item.counts(now))


def _left(
    budget: MoveBudget, history: Sequence[PastChange], running: int, now: datetime
) -> MovesLeft:
    counted = [
        (item.time, count)
        for item in history
        if within_period(item.time, now, budget.period)
        and (count := sum(item.moves.get(reason, 0) for reason in budget.reasons))
    ]
    left = max(0, budget.most(running) - sum(count for _, count in counted))
    ends = [time + budget.period for time, _ in counted]
    window = budget.window_end(now)
    return MovesLeft(budget, left, min(filter(None, [*ends, window]), default=None))


def within_period(time: datetime, now: datetime, period: timedelta) -> bool:
    """Tell whether a time is less than a period ago.

    A time ahead, because a clock went back, counts while it is less than a period away: a clock
    that was wrong by years stops nothing for years.
    """
    return abs(now - time) < period


def fewest(left: Iterable[MovesLeft], reason: MoveReason) -> int | None:
    """Return how many moves for a reason are left; None if no budget counts them."""
    return min((item.moves for item in left if reason in item.reasons), default=None)
