"""Fewer stages from the same moves: each as early as no other move minds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from optimizer.domain.arrays import Floats
from optimizer.domain.time_left import TimeLeft
from optimizer.transition.transition_state import Move, TransitionProblem, TransitionState

MOST_CELLS = 20_000_000
"""Rows times stages, which are all looked at."""


@dataclass(slots=True)
class _Group:
    """Moves in free order; `worst`: what each row takes at most while some of them are done."""

    worst: Floats
    flips: list[Move] = field(default_factory=list)


def in_parallel(
    moves: TransitionProblem, stages: Sequence[tuple[Move, ...]], time_left: TimeLeft
) -> list[tuple[Move, ...]]:
    """Return the same moves in fewer stages; those of one task and of one pool keep their order.

    So every task is covered as it was. All rows hold in every stage, whichever part of it is done.
    """
    if len(stages) * len(moves.rows) > MOST_CELLS:
        return list(stages)
    board, groups, last = TransitionState(moves, moves.start), list[_Group](), dict[int, int]()
    for stage in stages:
        if not time_left():
            return list(stages)
        for flips in stage:
            _place(board, groups, flips, last)
            board.flip(flips)
    return [tuple(group.flips) for group in groups]


def _place(board: TransitionState, groups: list[_Group], flips: Move, last: dict[int, int]) -> None:
    """Put a move into the earliest group that comes after its own task's and in which it fits."""
    rows, amounts = board.peak(flips)
    after, net = board.delta(flips)
    keys = {_key(board.moves, column) for column in flips}
    first = max((last.get(key, -1) + 1 for key in keys), default=0)
    limits, more = board.moves.limits[rows], amounts.clip(min=0)
    found = len(groups)
    while found > first and (groups[found - 1].worst[rows] + more <= limits).all():
        found -= 1
    if found == len(groups):
        groups.append(_Group(board.taken.copy()))
    groups[found].worst[rows] += more
    for group in groups[found + 1 :]:
        group.worst[after] += net
    groups[found].flips.append(flips)
    last.update(dict.fromkeys(keys, found))


def _key(moves: TransitionProblem, column: int) -> int:
    """Return a number for a task, or for a pool: that of its first policy, below 0."""
    if moves.task[column] >= 0:
        return int(moves.task[column])
    option = moves.problem.policies[column]
    same = (
        index
        for index, other in enumerate(moves.problem.policies)
        if (other.cluster, other.pool) == (option.cluster, option.pool)
    )
    return -1 - next(same)
