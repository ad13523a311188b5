"""An order found by doing what is possible, and making room where nothing is."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from optimizer.domain.time_left import TimeLeft
from optimizer.transition.transition_state import Move, TransitionProblem, TransitionState

_MOST_COMPARED = 100


class Stage(NamedTuple):
    """Changes that may be made in any order, or `together` where none of them is legal alone."""

    flips: tuple[Move, ...]


def greedy_stages(
    moves: TransitionProblem, detours: Iterable[int], time_left: TimeLeft
) -> list[Stage]:
    """Return stages from start to goal; every rule holds after each of them.

    `detours`: places that may be taken for a while, so that no replica goes uncovered. Once there
    is no time left, what is not done yet is done at once, and costs what it moves a moment.
    """
    board, stages, spare = TransitionState(moves, moves.start), list[Stage](), tuple(detours)
    most = 4 * len(moves.task) + 10
    while board.state != moves.goal and len(stages) < most and time_left():
        done = list(_round(board)) or list(_unblocked(board, spare)) or list(_anew(board))
        stages += done
    if board.state != moves.goal:
        stages += _anew(board)
    return stages


def _round(board: TransitionState) -> Iterator[Stage]:
    """Yield what can be done without uncovering a replica."""
    moves = board.moves
    changes = [item for item in moves.policy_changes if _due(board, item)]
    yield from _wave(board, changes)
    yield from _wave(board, _starts(board)) or _together(board, _starts(board))
    stops: list[Move] = [(c,) for c in sorted(board.state - moves.goal) if moves.task[c] >= 0]
    yield from _stops(board, stops)


def _due(board: TransitionState, change: Move) -> bool:
    return any((column in board.state) != (column in board.moves.goal) for column in change)


def _starts(board: TransitionState) -> list[Move]:
    moves = board.moves
    return [(c,) for c in sorted(moves.goal - board.state) if moves.task[c] >= 0]


def _wave(board: TransitionState, possible: list[Move]) -> list[Stage]:
    """Do all that can be done in any order: rows hold whichever part of it is done."""
    before, worst, done = board.moves, board.taken.copy(), list[Move]()
    for item in possible:
        rows, amounts = board.peak(item)
        if (worst[rows] + amounts <= before.limits[rows]).all():
            worst[rows] += amounts.clip(min=0)
            done.append(item)
    for item in done:
        board.flip(item)
    return [Stage(tuple(done))] if done else []


def _stops(board: TransitionState, possible: list[Move]) -> list[Stage]:
    """Stop what is covered elsewhere."""
    left, chosen = list(board.running), list[Move]()
    for item in possible:
        task = board.moves.task[item[0]]
        if left[task] > board.moves.needed[task]:
            left[task] -= 1
            chosen.append(item)
    return _wave(board, chosen) or _together(board, chosen)


def _together(board: TransitionState, possible: list[Move]) -> list[Stage]:
    """Do at once what only works at once, such as workloads that want each other near."""
    flips = [column for item in possible for column in item]
    while flips and (broken := board.broken(flips)):
        spoiling = {
            column
            for row in broken
            for column in board.moves.rows[row].columns.tolist()
            if column in flips
        }
        flips = [column for column in flips if column not in spoiling]
        if not spoiling:
            return []
    if not flips:
        return []
    board.flip(flips)
    return [Stage((tuple(flips),))]


class _Way(NamedTuple):
    """How a change could be made possible: what has to stop for it."""

    uncovered: int
    stops: tuple[int, ...]
    change: Move


def _unblocked(board: TransitionState, detours: tuple[int, ...]) -> Iterator[Stage]:
    """Make the change for which least has to stop, and let what stops run elsewhere if it can."""
    due = [item for item in board.moves.policy_changes if _due(board, item)]
    blocked = [*due, *_starts(board)][:_MOST_COMPARED]
    ways = [way for item in blocked if (way := _way(board, item)) is not None]
    if not ways:
        return
    best = min(ways)
    for column in best.stops:
        if not board.covered_without(column):
            yield from _detour(board, column, detours, best)
        yield _done(board, (column,))
    if board.can(best.change):
        yield _done(board, best.change)


def _way(board: TransitionState, change: Move) -> _Way | None:
    """Return what must stop before a change; None where stopping does not help."""
    moves, stops = board.moves, list[int]()
    while broken := board.broken([*stops, *change]):
        in_the_way = [
            c for row in broken for c in _taking(board, row) if c not in (*stops, *change)
        ]
        if not in_the_way:
            return None
        stops.append(min(in_the_way, key=lambda c: _loss(board, c)))
    if any(not board.can(stops[: index + 1]) for index in range(len(stops))):
        return None
    left = dict.fromkeys((moves.task[column] for column in stops), 0)
    for column in stops:
        left[moves.task[column]] += 1
    uncovered = sum(
        max(0, moves.needed[task] - board.running[task] + count) for task, count in left.items()
    )
    return _Way(uncovered, tuple(stops), change)


def _taking(board: TransitionState, row: int) -> list[int]:
    """Return the places that take something of a row."""
    found, moves = board.moves.rows[row], board.moves
    pairs = zip(found.columns.tolist(), found.coefficients.tolist(), strict=True)
    return [c for c, amount in pairs if amount > 0 and c in board.state and moves.task[c] >= 0]


def _loss(board: TransitionState, column: int) -> tuple[bool, bool, int, int]:
    """Order what could stop: covered first, then what has to go anyway, then low priorities."""
    moves = board.moves
    priority = moves.problem.workloads[moves.task[column]].priority
    return not board.covered_without(column), column in moves.goal, priority, column


def _detour(
    board: TransitionState, column: int, detours: tuple[int, ...], way: _Way
) -> Iterator[Stage]:
    """Start a task elsewhere for a while, where that does not stand in the way itself."""
    task = board.moves.task[column]
    for other in detours:
        if board.moves.task[other] == task and other not in board.state:
            planned = [*way.stops, *way.change]
            left = [item for item in planned if _pending(board, item, way)]
            if board.can((other,)) and board.can([other, *left]):
                yield _done(board, (other,))
                return


def _pending(board: TransitionState, column: int, way: _Way) -> bool:
    """Tell whether a planned flip is still to come."""
    return column in way.change or column in board.state


def _done(board: TransitionState, flips: Move) -> Stage:
    board.flip(flips)
    return Stage((flips,))


def _in_any_order(board: TransitionState, stops: Iterable[int], changes: Iterable[Move]) -> bool:
    """Tell whether rows hold whichever part of the changes is done, once something has stopped."""
    worst = board.taken.copy()
    rows, amounts = board.delta(stops)
    worst[rows] += amounts
    for item in changes:
        rows, amounts = board.peak(item)
        worst[rows] += amounts.clip(min=0)
    return bool((worst <= board.moves.limits).all())


def _anew(board: TransitionState) -> Iterator[Stage]:
    """Stop what moves, change policies, start the rest.

    Where that breaks a rule what runs on the clusters of those policies stops too, or everything.
    """
    moves = board.moves
    running = [c for c in board.state if moves.task[c] >= 0]
    changes = [item for item in moves.policy_changes if _due(board, item)]
    moving = [c for c in running if c not in moves.goal]
    at = moves.problem.column_cluster
    under = {int(at[c]) for item in changes for c in item}
    for stops in (moving, [c for c in running if c in moving or int(at[c]) in under], running):
        if board.can(stops) and _in_any_order(board, stops, changes):
            break
    if stops:
        yield _done(board, tuple(sorted(stops)))
    while changes and (done := _wave(board, changes)):
        yield from done
        changes = [item for item in changes if _due(board, item)]
    if changes:
        yield _done(board, tuple(column for item in changes for column in item))
    places = tuple(sorted(moves.goal - board.state))
    if places:
        yield _done(board, places)
