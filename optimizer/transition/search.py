"""The order with least disruption, by trying all orders of few changes."""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from optimizer.transition.board import Board, Flips, Going, Moves, State, unhurried


class Found(NamedTuple):
    """Flips one after another; None where the search was given up. `least`: nothing is better."""

    flips: tuple[Flips, ...] | None
    least: bool


def searched(
    moves: Moves, detours: Iterable[int], *, most_states: int, going: Going = unhurried
) -> Found:
    """Return the order with fewest replicas uncovered, then fewest changes.

    Best first (A*): at least the differences to the goal remain.
    """
    possible = [*moves.policy_changes, *_places(moves, detours)]
    cost: dict[State, tuple[int, int]] = {moves.start: (0, 0)}
    came: dict[State, tuple[State, Flips]] = {}
    queue = [((0, _left(moves, moves.start)), 0, moves.start)]
    closed: set[State] = set()
    while queue and len(closed) < most_states and going():
        state = heapq.heappop(queue)[2]
        if state == moves.goal:
            return Found(tuple(_path(came, state)), least=True)
        if state in closed:
            continue
        closed.add(state)
        board = Board(moves, state)
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


def _places(moves: Moves, detours: Iterable[int]) -> Iterator[Flips]:
    ours = {column for column in moves.start | moves.goal if moves.task[column] >= 0}
    yield from ((column,) for column in sorted(ours | set(detours)))


def _allowed(board: Board, flips: Flips) -> bool:
    """Policies change once, towards the goal; places come and go."""
    moves = board.moves
    if moves.task[flips[0]] < 0 and all((c in board.state) == (c in moves.goal) for c in flips):
        return False
    return board.can(flips)


def _uncovers(board: Board, flips: Flips) -> int:
    column = flips[0]
    stops = board.moves.task[column] >= 0 and column in board.state
    return int(stops and not board.covered_without(column))


def _left(moves: Moves, state: State) -> int:
    """Return how many changes are needed at least: one changes a place, or two policies."""
    return (len(state ^ moves.goal) + 1) // 2


def _path(came: dict[State, tuple[State, Flips]], state: State) -> list[Flips]:
    found = []
    while state in came:
        state, flips = came[state]
        found.append(flips)
    return found[::-1]
