"""Stages of moves: every move that is feasible, room where none is, and then as few as possible.

List scheduling puts each move into the earliest stage in which every rule still holds.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import TimeLeft
from optimizer.transition.transition_state import Move, TransitionProblem, TransitionState
from optimizer.transition.tuning import COMPARED_MOVES, SCHEDULED_CELLS

Stage = tuple[Move, ...]
"""Moves in any order; every rule holds whichever of them are made."""


def greedy_stages(
    moves: TransitionProblem, detours: Iterable[int], time_left: TimeLeft
) -> list[Stage]:
    """Return stages from start to goal; every rule holds after each of them.

    `detours`: assignments that a workload may use for a while so that no replica is uncovered. Once
    there is no time left, the rest is done at once: what moves then stops for a moment.
    """
    state, stages, spare = TransitionState(moves, moves.start), list[Stage](), tuple(detours)
    most = 4 * len(moves.workload) + 10
    while state.variables != moves.goal and len(stages) < most and time_left():
        done = list(_round(state)) or list(_unblocked(state, spare)) or list(_anew(state))
        stages += done
    if state.variables != moves.goal:
        stages += _anew(state)
    return stages


def _round(state: TransitionState) -> Iterator[Stage]:
    """Yield the moves that are feasible and leave no replica uncovered."""
    moves = state.moves
    changes = [item for item in moves.policy_changes if _due(state, item)]
    yield from _wave(state, changes)
    yield from _wave(state, _starts(state)) or _together(state, _starts(state))
    stops: list[Move] = [
        (c,) for c in sorted(state.variables - moves.goal) if moves.workload[c] >= 0
    ]
    yield from _stops(state, stops)


def _due(state: TransitionState, change: Move) -> bool:
    return any((column in state.variables) != (column in state.moves.goal) for column in change)


def _starts(state: TransitionState) -> list[Move]:
    moves = state.moves
    return [(c,) for c in sorted(moves.goal - state.variables) if moves.workload[c] >= 0]


def _wave(state: TransitionState, possible: list[Move]) -> list[Stage]:
    """Make all moves that keep every row, whichever part of them is made."""
    least, done = state.row_residual.copy(), list[Move]()
    for item in possible:
        rows, amounts = state.peak_change(item)
        if (amounts <= least[rows]).all():
            least[rows] -= amounts.clip(min=0)
            done.append(item)
    for item in done:
        state.make(item)
    return [tuple(done)] if done else []


def _stops(state: TransitionState, possible: list[Move]) -> list[Stage]:
    """Stop what also runs elsewhere as often as needed."""
    left, chosen = list(state.running), list[Move]()
    for item in possible:
        workload = state.moves.workload[item[0]]
        if left[workload] > state.moves.needed[workload]:
            left[workload] -= 1
            chosen.append(item)
    return _wave(state, chosen) or _together(state, chosen)


def _together(state: TransitionState, possible: list[Move]) -> list[Stage]:
    """Make at once the moves that are only feasible together, such as mutual affinity."""
    move = [column for item in possible for column in item]
    while move and (broken := state.violated_rows(move)):
        spoiling = {
            column
            for row in broken
            for column in state.moves.rows[row].columns.tolist()
            if column in move
        }
        move = [column for column in move if column not in spoiling]
        if not spoiling:
            return []
    if not move:
        return []
    state.make(move)
    return [(tuple(move),)]


class _Unblocking(NamedTuple):
    """A blocked move and what has to stop for it; ordered by how much is uncovered."""

    uncovered: int
    stops: tuple[int, ...]
    change: Move


def _unblocked(state: TransitionState, detours: tuple[int, ...]) -> Iterator[Stage]:
    """Make the blocked move for which least has to stop; what stops runs elsewhere if it can.

    Detours are chosen so that the move is feasible once what blocks it has stopped.
    """
    due = [item for item in state.moves.policy_changes if _due(state, item)]
    blocked = [*due, *_starts(state)][:COMPARED_MOVES]
    ways = [way for item in blocked if (way := _unblocking(state, item)) is not None]
    if not ways:
        return
    best = min(ways)
    for column in best.stops:
        if not state.covered_without(column):
            yield from _detour(state, column, detours, best)
        yield _done(state, (column,))
    yield _done(state, best.change)


def _unblocking(state: TransitionState, change: Move) -> _Unblocking | None:
    """Return what must stop before a move; None where stopping does not help."""
    moves, stops = state.moves, list[int]()
    while broken := state.violated_rows([*stops, *change]):
        in_the_way = [
            c for row in broken for c in _taking(state, row) if c not in (*stops, *change)
        ]
        if not in_the_way:
            return None
        stops.append(min(in_the_way, key=lambda c: _loss(state, c)))
    if any(not state.is_feasible(stops[: index + 1]) for index in range(len(stops))):
        return None
    stopped = Counter(moves.workload[column] for column in stops)
    uncovered = sum(
        max(0, moves.needed[workload] - state.running[workload] + count)
        for workload, count in stopped.items()
    )
    return _Unblocking(uncovered, tuple(stops), change)


def _taking(state: TransitionState, row: int) -> list[int]:
    """Return the assignments that are made and take something of a row."""
    found, moves = state.moves.rows[row], state.moves
    pairs = zip(found.columns.tolist(), found.coefficients.tolist(), strict=True)
    return [
        c for c, amount in pairs if amount > 0 and c in state.variables and moves.workload[c] >= 0
    ]


def _loss(state: TransitionState, column: int) -> tuple[bool, bool, int, int]:
    """Rank what could stop: covered workloads, those that leave anyway, then low priorities."""
    moves = state.moves
    priority = moves.problem.workloads[moves.workload[column]].priority
    return not state.covered_without(column), column in moves.goal, priority, column


def _detour(
    state: TransitionState, column: int, detours: tuple[int, ...], way: _Unblocking
) -> Iterator[Stage]:
    """Run a workload elsewhere for a while, where that does not block the move itself."""
    workload = state.moves.workload[column]
    for other in detours:
        if state.moves.workload[other] == workload and other not in state.variables:
            left = [*(c for c in way.stops if c in state.variables), *way.change]
            if state.is_feasible((other,)) and state.is_feasible([other, *left]):
                yield _done(state, (other,))
                return


def _done(state: TransitionState, move: Move) -> Stage:
    state.make(move)
    return (move,)


def _in_any_order(state: TransitionState, stops: Iterable[int], changes: Iterable[Move]) -> bool:
    """Tell whether rows hold whichever part of the changes is done, once something has stopped."""
    least = state.row_residual.copy()
    rows, amounts = state.change(stops)
    least[rows] -= amounts
    for item in changes:
        rows, amounts = state.peak_change(item)
        least[rows] -= amounts.clip(min=0)
    return bool((least >= 0).all())


def _anew(state: TransitionState) -> Iterator[Stage]:
    """Stop what moves, change policies, start the rest.

    Where that breaks a rule, stop what runs on the clusters of those policies too, else everything.
    """
    moves = state.moves
    running = [c for c in state.variables if moves.workload[c] >= 0]
    changes = [item for item in moves.policy_changes if _due(state, item)]
    moving = [c for c in running if c not in moves.goal]
    at = moves.problem.column_cluster
    under = {int(at[c]) for item in changes for c in item}
    for stops in (moving, [c for c in running if c in moving or int(at[c]) in under], running):
        if state.is_feasible(stops) and _in_any_order(state, stops, changes):
            break
    if stops:
        yield _done(state, tuple(sorted(stops)))
    while changes and (done := _wave(state, changes)):
        yield from done
        changes = [item for item in changes if _due(state, item)]
    if changes:
        yield _done(state, tuple(column for item in changes for column in item))
    assignments = tuple(sorted(moves.goal - state.variables))
    if assignments:
        yield _done(state, assignments)


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
