"""The least disruptive order of few moves, as a shortest path over states (A*).

P. E. Hart, N. J. Nilsson, B. Raphael, "A formal basis for the heuristic determination of minimum
cost paths", IEEE Transactions on Systems Science and Cybernetics 4 (1968). The cost of a path is
(replicas uncovered, moves made), compared in this order.
"""

import heapq
from collections.abc import Iterable

from optimizer.domain.stop_callback import TimeLeft, unlimited
from optimizer.transition.transition_state import (
    Move,
    TransitionProblem,
    TransitionState,
    VariableSet,
)


def shortest_path(
    moves: TransitionProblem,
    detours: Iterable[int],
    *,
    most_states: int,
    time_left: TimeLeft = unlimited,
) -> tuple[Move, ...] | None:
    """Return the moves of a shortest path from start to goal; None where none is found in time."""
    assignments = {column for column in moves.start | moves.goal if moves.workload[column] >= 0}
    possible = [*moves.policy_changes, *((c,) for c in sorted(assignments.union(detours)))]
    cost: dict[VariableSet, tuple[int, int]] = {moves.start: (0, 0)}
    came: dict[VariableSet, tuple[VariableSet, Move]] = {}
    queue = [((0, _left(moves, moves.start)), 0, moves.start)]
    closed: set[VariableSet] = set()
    while queue and len(closed) < most_states and time_left():
        state = heapq.heappop(queue)[2]
        if state == moves.goal:
            return tuple(_path(came, state))
        if state in closed:
            continue
        closed.add(state)
        current = TransitionState(moves, state)
        for move in possible:
            if not _allowed(current, move):
                continue
            after = state.symmetric_difference(move)
            price = cost[state][0] + _uncovers(current, move), cost[state][1] + 1
            if after not in cost or price < cost[after]:
                cost[after], came[after] = price, (state, move)
                rank = price[0], price[1] + _left(moves, after)
                heapq.heappush(queue, (rank, len(cost), after))
    return None


def _allowed(current: TransitionState, move: Move) -> bool:
    """Tell whether a move is feasible; policies change only towards the goal."""
    moves = current.moves
    if moves.workload[move[0]] < 0 and all(
        (c in current.variables) == (c in moves.goal) for c in move
    ):
        return False
    return current.is_feasible(move)


def _uncovers(current: TransitionState, move: Move) -> int:
    column = move[0]
    stops = current.moves.workload[column] >= 0 and column in current.variables
    return int(stops and not current.covered_without(column))


def _left(moves: TransitionProblem, state: VariableSet) -> int:
    """Return a lower bound on the moves left: a move changes at most two variables."""
    return (len(state ^ moves.goal) + 1) // 2


def _path(came: dict[VariableSet, tuple[VariableSet, Move]], state: VariableSet) -> list[Move]:
    found = []
    while state in came:
        state, move = came[state]
        found.append(move)
    return found[::-1]
