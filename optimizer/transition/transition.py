"""Plans a transition: greedy stages, a shortest path where moves are few, then list scheduling."""

import heapq
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, TimeLeft, unlimited
from optimizer.model.allocation import Allocation
from optimizer.model.current_state import with_surge
from optimizer.model.problem import Problem
from optimizer.model.rules import chosen_part
from optimizer.transition.policy_replacement import ReplacementLookup, nothing_stays
from optimizer.transition.stages import greedy_stages, in_parallel
from optimizer.transition.transition_state import (
    Move,
    TransitionProblem,
    TransitionState,
    VariableSet,
)
from optimizer.transition.tuning import (
    DETOURS_PER_WORKLOAD,
    KEPT_DETOURS,
    SHORTEST_PATH_STATES,
    SHORTEST_PATH_VARIABLES,
)


class TransitionStage(NamedTuple):
    """Changes that may happen in any order, and the workloads that run on too few clusters then.

    `replaced`: pairs of a released policy and the one that follows it in its pool.
    """

    enforced: tuple[PolicyEnforcement, ...]
    released: tuple[PolicyEnforcement, ...]
    started: tuple[Assignment, ...]
    stopped: tuple[Assignment, ...]
    uncovered: tuple[str, ...]
    detours: tuple[Assignment, ...]
    replaced: tuple[tuple[PolicyEnforcement, PolicyEnforcement], ...]
    state: Decision


class Transition(NamedTuple):
    """Stages in order; `least`: proven that no order leaves fewer replicas uncovered."""

    stages: tuple[TransitionStage, ...]
    uncovered: tuple[str, ...]
    least: bool


def plan_transition(
    problem: Problem,
    start: Decision,
    goal: Decision,
    time_left: TimeLeft = unlimited,
    replacements: ReplacementLookup = nothing_stays,
    others: Mapping[str, Collection[Hashable]] = MappingProxyType({}),
) -> Transition:
    """Return stages from a start to a goal; both must be feasible if replicas may surge.

    After every stage all rules of `with_surge(problem, 1)` hold. While a policy is replaced, they
    hold with only the supply that `replacements` says stays. `others`: by cluster, the workloads
    of others that a change of its policies uncovers.
    """
    moves, detours, left_out = _moves(problem, start, goal, replacements)
    stages = in_parallel(moves, greedy_stages(moves, detours, time_left), time_left, others)
    found = _described(moves, stages, detours, least=False)
    if not found.uncovered and not any(stage.detours for stage in found.stages):
        return found
    if len(moves.start ^ moves.goal) > SHORTEST_PATH_VARIABLES:
        return found
    better = shortest_path(moves, detours, most_states=SHORTEST_PATH_STATES, time_left=time_left)
    if better is None:
        return found
    stages = in_parallel(moves, [(item,) for item in better], time_left, others)
    other = _described(moves, stages, detours, least=not left_out)
    return other if len(_events(other)) <= len(_events(found)) else found


def _events(found: Transition) -> list[str]:
    return [name for stage in found.stages for name in stage.uncovered]


def _moves(
    problem: Problem, start: Decision, goal: Decision, replacements: ReplacementLookup
) -> tuple[TransitionProblem, list[int], bool]:
    """Return the problem of the moves, detours, and whether some detours were left out."""
    wide = with_surge(problem, 1)
    moving = {assignment.workload for assignment in set(start.assignments) ^ set(goal.assignments)}
    both = Decision(
        tuple(dict.fromkeys((*start.policies, *goal.policies))),
        tuple(dict.fromkeys((*start.assignments, *goal.assignments))),
    )
    extra = _detours(wide, both, {assignment.workload for assignment in both.assignments})
    many = len(extra) > KEPT_DETOURS
    if many:
        changed = {choice.cluster for choice in set(start.policies) ^ set(goal.policies)}
        touched = moving | {i.workload for i in both.assignments if i.cluster in changed}
        extra = _detours_with_capacity(wide, start, goal, sorted(touched), extra)
    part, _ = chosen_part(wide, Decision(both.policies, (*both.assignments, *extra)))
    return (
        TransitionProblem(part, start, goal, replacements),
        [part.column(*pair) for pair in part.indexes_of(extra)],
        many,
    )


def _detours(problem: Problem, both: Decision, names: set[str]) -> tuple[Assignment, ...]:
    """Return the other assignments of workloads on resources of the start or goal."""
    there = np.array(problem.base > 0)
    for choice in both.policies:
        for resource, _ in problem.policies[problem.policy_index[choice]].supplies:
            there[resource] = True
    workloads = np.array(sorted(problem.workload_index[name] for name in names), dtype=np.int64)
    rows, resources = np.nonzero(there & ~np.isnan(problem.values[workloads]))
    taken = set(both.assignments)
    pairs = zip(workloads[rows].tolist(), resources.tolist(), strict=True)
    return tuple(
        assignment for pair in pairs if (assignment := problem.assignment(*pair)) not in taken
    )


def _detours_with_capacity(
    problem: Problem,
    start: Decision,
    goal: Decision,
    names: Iterable[str],
    possible: Iterable[Assignment],
) -> tuple[Assignment, ...]:
    """Return a few assignments of each workload that have capacity left at start or goal.

    Clusters are tried from the workload's own onwards, so that workloads get different ones.
    """
    room = np.maximum(*(Allocation(problem, decision).residual for decision in (start, goal)))
    number, home = problem.cluster_index, {p.workload: p.cluster for p in start.assignments}
    found: dict[str, list[tuple[int, Assignment]]] = {name: [] for name in names}
    for assignment in possible:
        at = problem.indexes(assignment)
        if assignment.workload in found and at and room[at[1]] >= problem.workloads[at[0]].amount:
            own = number[home.get(assignment.workload, assignment.cluster)]
            away = (number[assignment.cluster] - own) % len(number)
            found[assignment.workload].append((away, assignment))
    few = (sorted(assignments)[:DETOURS_PER_WORKLOAD] for assignments in found.values())
    return tuple(assignment for assignments in few for _, assignment in assignments)


def _described(
    moves: TransitionProblem,
    stages: Sequence[tuple[Move, ...]],
    detours: Sequence[int],
    *,
    least: bool,
) -> Transition:
    state = TransitionState(moves, moves.start)
    described = tuple(_stage(state, move, set(detours)) for move in stages)
    names = dict.fromkeys(name for stage in described for name in stage.uncovered)
    return Transition(described, tuple(names), least or not names)


def _stage(state: TransitionState, move: tuple[Move, ...], detours: set[int]) -> TransitionStage:
    problem = state.moves.problem
    columns = [column for item in move for column in item]
    on = problem.decision(column for column in columns if column not in state.variables)
    off = problem.decision(column for column in columns if column in state.variables)
    before = set(state.uncovered())
    state.make(columns)
    newly = [workload for workload in state.uncovered() if workload not in before]
    taken = problem.decision(c for c in columns if c in detours and c in state.variables)
    return TransitionStage(
        enforced=on.policies,
        released=off.policies,
        started=on.assignments,
        stopped=off.assignments,
        uncovered=tuple(problem.workloads[workload].name for workload in newly),
        detours=taken.assignments,
        replaced=tuple(
            (problem.enforcement(item[0]), problem.enforcement(item[1]))
            for item in state.moves.policy_changes
            if len(item) > 1 and item[1] in columns
        ),
        state=problem.decision(state.variables),
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
