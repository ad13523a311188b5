"""The order with least disruption, by trying all orders of few changes."""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.transition.transition_state import (
    Move,
    TransitionProblem,
    TransitionState,
    VariableSet,
)


class Found(NamedTuple):
    """Flips one after another; None where the search was given up. `least`: nothing is better."""

    flips: tuple[Move, ...] | None
    least: bool


def shortest_path(
    moves: TransitionProblem,
    detours: Iterable[int],
    *,
    most_states: int,
    time_left: TimeLeft = unlimited,
) -> Found:
    """Return the order with fewest replicas uncovered, then fewest changes.

    Best first (A*): at least the differences to the goal remain.
    """
    possible = [*moves.policy_changes, *_places(moves, detours)]
    cost: dict[VariableSet, tuple[int, int]] = {moves.start: (0, 0)}
    came: dict[VariableSet, tuple[VariableSet, Move]] = {}
    queue = [((0, _left(moves, moves.start)), 0, moves.start)]
    closed: set[VariableSet] = set()
    while queue and len(closed) < most_states and time_left():
        state = heapq.heappop(queue)[2]
        if state == moves.goal:
            return Found(tuple(_path(came, state)), least=True)
        if state in closed:
            continue
        closed.add(state)
        board = TransitionState(moves, state)
        for flips in possible:
            if not _allowed(board, flips):
                continue
            after = state.symmetric_difference(flips)
            price = cost[state][0] + _uncovers(board, flips), cost[state][1] + 1
            if after not in cost or price < cost[after]:
                cost[after], came[after] = price, (state, flips)
                rank = price[0], price[1] + _left(moves, after)
                heapq.heappush(queue, (rank, len(cost), after))
    return Found(None, least=not queue)


def _places(moves: TransitionProblem, detours: Iterable[int]) -> Iterator[Move]:
    ours = {column for column in moves.start | moves.goal if moves.task[column] >= 0}
    yield from ((column,) for column in sorted(ours | set(detours)))


def _allowed(board: TransitionState, flips: Move) -> bool:
    """Policies change once, towards the goal; places come and go."""
    moves = board.moves
    if moves.task[flips[0]] < 0 and all((c in board.state) == (c in moves.goal) for c in flips):
        return False
    return board.can(flips)


def _uncovers(board: TransitionState, flips: Move) -> int:
    column = flips[0]
    stops = board.moves.task[column] >= 0 and column in board.state
    return int(stops and not board.covered_without(column))


def _left(moves: TransitionProblem, state: VariableSet) -> int:
    """Return how many changes are needed at least: one changes a place, or two policies."""
    return (len(state ^ moves.goal) + 1) // 2


def _path(came: dict[VariableSet, tuple[VariableSet, Move]], state: VariableSet) -> list[Move]:
    found = []
    while state in came:
        state, flips = came[state]
        found.append(flips)
    return found[::-1]
