"""List scheduling of moves: each goes into the earliest stage in which every rule still holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from optimizer.domain.arrays import Floats
from optimizer.domain.stop_callback import TimeLeft
from optimizer.transition.transition_state import Move, TransitionProblem, TransitionState
from optimizer.transition.tuning import SCHEDULED_CELLS


@dataclass(slots=True)
class _ScheduledStage:
    """A stage of moves; `least` [rows]: what rows have left at least while some are made."""

    least: Floats
    moves: list[Move] = field(default_factory=list)


def in_parallel(
    moves: TransitionProblem, stages: Sequence[tuple[Move, ...]], time_left: TimeLeft
) -> list[tuple[Move, ...]]:
    """Return the same moves in fewer stages.

    Moves of one workload and of one pool keep their order, so coverage stays as it was.
    """
    if len(stages) * len(moves.rows) > SCHEDULED_CELLS:
        return list(stages)
    state, groups, last = (
        TransitionState(moves, moves.start),
        list[_ScheduledStage](),
        dict[int, int](),
    )
    for stage in stages:
        if not time_left():
            return list(stages)
        for move in stage:
            _schedule_move(state, groups, move, last)
            state.make(move)
    return [tuple(group.moves) for group in groups]


def _schedule_move(
    state: TransitionState, groups: list[_ScheduledStage], move: Move, last: dict[int, int]
) -> None:
    """Put a move into the earliest feasible stage after the last one of its workload or pool."""
    rows, amounts = state.peak_change(move)
    after, net = state.change(move)
    keys = {_key(state.moves, column) for column in move}
    first = max((last.get(key, -1) + 1 for key in keys), default=0)
    more, found = amounts.clip(min=0), len(groups)
    while found > first and (more <= groups[found - 1].least[rows]).all():
        found -= 1
    if found == len(groups):
        groups.append(_ScheduledStage(state.row_residual.copy()))
    groups[found].least[rows] -= more
    for group in groups[found + 1 :]:
        group.least[after] -= net
    groups[found].moves.append(move)
    last.update(dict.fromkeys(keys, found))


def _key(moves: TransitionProblem, column: int) -> int:
    """Return a number for a workload, or for a pool: that of its first policy, below 0."""
    if moves.workload[column] >= 0:
        return int(moves.workload[column])
    return -1 - moves.problem.pools[moves.problem.policies[column][:2]][0]
