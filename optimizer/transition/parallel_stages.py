"""List scheduling of moves: each goes into the earliest stage in which every rule still holds."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import TimeLeft
from optimizer.transition.transition_state import Move, TransitionProblem, TransitionState
from optimizer.transition.tuning import SCHEDULED_CELLS


@dataclass(slots=True)
class _ScheduledStage:
    """A stage of moves; `least` [rows]: what rows have left at least while some are made."""

    least: Floats
    moves: list[Move] = field(default_factory=list)


class _LastStages:
    """The last stage of each workload and pool, and of each workload of `others` with its cluster.

    Further policies of the same cluster may join its stage: the claim that others lose is one.
    """

    def __init__(self, others: Mapping[str, Collection[Hashable]]) -> None:
        self._others = others
        self._own = dict[int, int]()
        self._uncovered = dict[Hashable, tuple[int, str]]()

    def first(self, moves: TransitionProblem, move: Move) -> int:
        """Return the earliest stage in which a move may be."""
        found = [self._own.get(_key(moves, column), -1) + 1 for column in move]
        for cluster in _clusters(moves, move):
            for other in self._others.get(cluster, ()):
                stage, where = self._uncovered.get(other, (-1, cluster))
                found.append(stage if where == cluster else stage + 1)
        return max(found, default=0)

    def put(self, moves: TransitionProblem, move: Move, stage: int) -> None:
        """Remember the stage of a move."""
        self._own.update((_key(moves, column), stage) for column in move)
        for cluster in _clusters(moves, move):
            for other in self._others.get(cluster, ()):
                self._uncovered[other] = (stage, cluster)


def in_parallel(
    moves: TransitionProblem,
    stages: Sequence[tuple[Move, ...]],
    time_left: TimeLeft,
    others: Mapping[str, Collection[Hashable]],
) -> list[tuple[Move, ...]]:
    """Return the same moves in fewer stages.

    Moves of one workload and of one pool keep their order, so coverage stays as it was. Policies of
    two clusters on which `others` have the same workload are not changed in one stage, because it
    would lose both replicas at once.
    """
    if len(stages) * len(moves.rows) > SCHEDULED_CELLS:
        return list(stages)
    state, groups, last = (
        TransitionState(moves, moves.start),
        list[_ScheduledStage](),
        _LastStages(others),
    )
    for stage in stages:
        if not time_left():
            return list(stages)
        for move in stage:
            _schedule_move(state, groups, move, last)
            state.make(move)
    return [tuple(group.moves) for group in groups]


def _schedule_move(
    state: TransitionState, groups: list[_ScheduledStage], move: Move, last: _LastStages
) -> None:
    """Put a move into the earliest feasible stage after the last one of its workload or pool."""
    rows, amounts = state.peak_change(move)
    after, net = state.change(move)
    first = last.first(state.moves, move)
    more, found = amounts.clip(min=0), len(groups)
    while found > first and (more <= groups[found - 1].least[rows]).all():
        found -= 1
    if found == len(groups):
        groups.append(_ScheduledStage(state.row_residual.copy()))
    groups[found].least[rows] -= more
    for group in groups[found + 1 :]:
        group.least[after] -= net
    groups[found].moves.append(move)
    last.put(state.moves, move, found)


def _clusters(moves: TransitionProblem, move: Move) -> set[str]:
    """Return the clusters whose policies a move changes."""
    policies = [column for column in move if moves.workload[column] < 0]
    return {moves.problem.enforcement(column).cluster for column in policies}


def _key(moves: TransitionProblem, column: int) -> int:
    """Return a number for a workload, or for a pool: that of its first policy, below 0."""
    if moves.workload[column] >= 0:
        return int(moves.workload[column])
    return -1 - moves.problem.pools[moves.problem.policies[column][:2]][0]
