"""The transition: which moves come first, and what they leave uncovered."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.model.current_state import with_surge
from optimizer.model.problem import Problem
from optimizer.model.rules import chosen_part
from optimizer.transition.greedy_order import greedy_stages
from optimizer.transition.parallel_stages import in_parallel
from optimizer.transition.policy_replacement import ReplacementLookup, nothing_stays
from optimizer.transition.shortest_path import shortest_path
from optimizer.transition.transition_state import Move, TransitionProblem, TransitionState

MOST_STATES = 2_000
_FEW = 12
_FEW_DETOURS = 200
_DETOURS_EACH = 3


class TransitionStage(NamedTuple):
    """What is done at once, and what then runs on fewer clusters than it could.

    `replaced`: of what is released and enforced, the policies that follow each other in a pool.
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
    """Stages; `least`: fewer replicas uncovered is impossible, shown by trying or by being none."""

    stages: tuple[TransitionStage, ...]
    uncovered: tuple[str, ...]
    least: bool


def plan_transition(
    problem: Problem,
    start: Decision,
    goal: Decision,
    time_left: TimeLeft = unlimited,
    swaps: ReplacementLookup = nothing_stays,
) -> Transition:
    """Return stages from a start to a goal, both legal where replicas may surge.

    After every stage all rules of `with_surge(problem, 1)` hold. While a policy is replaced, they
    hold with nothing but what stays by `swaps` in its place.
    """
    moves, detours, left_out = _moves(problem, start, goal, swaps)
    stages = in_parallel(
        moves, [stage.flips for stage in greedy_stages(moves, detours, time_left)], time_left
    )
    found = _told(moves, stages, detours, least=False)
    if not found.uncovered and not any(stage.detours for stage in found.stages):
        return found
    if len(moves.start ^ moves.goal) > _FEW:
        return found
    better = shortest_path(moves, detours, most_states=MOST_STATES, time_left=time_left)
    if better.flips is None:
        return found
    stages = in_parallel(moves, [(item,) for item in better.flips], time_left)
    other = _told(moves, stages, detours, least=not left_out)
    return other if len(_events(other)) <= len(_events(found)) else found


def _events(found: Transition) -> list[str]:
    return [name for stage in found.stages for name in stage.uncovered]


def _moves(
    problem: Problem, start: Decision, goal: Decision, swaps: ReplacementLookup
) -> tuple[TransitionProblem, list[int], bool]:
    """Return the part of the problem that matters, detours, and whether some were left out."""
    wide = with_surge(problem, 1)
    moving = {place.workload for place in set(start.assignments) ^ set(goal.assignments)}
    both = Decision(
        tuple(dict.fromkeys((*start.policies, *goal.policies))),
        tuple(dict.fromkeys((*start.assignments, *goal.assignments))),
    )
    touched = moving | _under_changes(start, goal, both)
    extra = _detours(wide, both, {place.workload for place in both.assignments})
    many = len(extra) > _FEW_DETOURS
    if many:
        extra = _roomy(wide, start, goal, sorted(touched), extra)
    part, _ = chosen_part(wide, Decision(both.policies, (*both.assignments, *extra)))
    number = {variable: index for index, variable in enumerate(part.variables)}
    return TransitionProblem(part, start, goal, swaps), [number[place] for place in extra], many


def _under_changes(start: Decision, goal: Decision, both: Decision) -> set[str]:
    """Return the workloads on clusters whose policies change."""
    changed = {choice.cluster for choice in set(start.policies) ^ set(goal.policies)}
    return {place.workload for place in both.assignments if place.cluster in changed}


def _detours(problem: Problem, both: Decision, names: set[str]) -> tuple[Assignment, ...]:
    """Return the other places of workloads on slots of the start or goal."""
    there = np.array(problem.base > 0)
    for choice in both.policies:
        for slot, _ in problem.policies[problem.policy_index[choice]].supplies:
            there[slot] = True
    tasks = np.array(sorted(problem.workload_index[name] for name in names), dtype=np.int64)
    rows, slots = np.nonzero(there & ~np.isnan(problem.values[tasks]))
    taken = set(both.assignments)
    pairs = zip(tasks[rows].tolist(), slots.tolist(), strict=True)
    return tuple(place for pair in pairs if (place := problem.assignment(*pair)) not in taken)


def _roomy(
    problem: Problem,
    start: Decision,
    goal: Decision,
    names: Iterable[str],
    possible: Iterable[Assignment],
) -> tuple[Assignment, ...]:
    """Return a few of the places of each workload that have room at the start or at the goal.

    They are on the clusters that follow its own: so not all workloads have the same ones.
    """
    room = np.maximum(_free(problem, start), _free(problem, goal))
    number, home = problem.cluster_index, {p.workload: p.cluster for p in start.assignments}
    found: dict[str, list[tuple[int, Assignment]]] = {name: [] for name in names}
    for place in possible:
        at = problem.indexes(place)
        if place.workload in found and at and room[at[1]] >= problem.workloads[at[0]].amount:
            own = number[home.get(place.workload, place.cluster)]
            away = (number[place.cluster] - own) % len(number)
            found[place.workload].append((away, place))
    few = (sorted(places)[:_DETOURS_EACH] for places in found.values())
    return tuple(place for places in few for _, place in places)


def _free(problem: Problem, decision: Decision) -> Floats:
    """Return what each slot has left."""
    free = problem.base.copy()
    for choice in decision.policies:
        for slot, amount in problem.policies[problem.policy_index[choice]].supplies:
            free[slot] += amount
    for place in decision.assignments:
        found = problem.indexes(place)
        if found is not None:
            free[found[1]] -= problem.workloads[found[0]].amount
    return free


def _told(
    moves: TransitionProblem,
    stages: Sequence[tuple[Move, ...]],
    detours: Sequence[int],
    *,
    least: bool,
) -> Transition:
    board = TransitionState(moves, moves.start)
    told = tuple(_stage(board, flips, set(detours)) for flips in stages)
    names = dict.fromkeys(name for stage in told for name in stage.uncovered)
    return Transition(told, tuple(names), least or not names)


def _stage(board: TransitionState, flips: tuple[Move, ...], detours: set[int]) -> TransitionStage:
    problem = board.moves.problem
    columns = [column for item in flips for column in item]
    on = problem.decision(column for column in columns if column not in board.state)
    off = problem.decision(column for column in columns if column in board.state)
    before = set(board.uncovered())
    board.flip(columns)
    newly = [task for task in board.uncovered() if task not in before]
    taken = problem.decision(c for c in columns if c in detours and c in board.state)
    return TransitionStage(
        enforced=on.policies,
        released=off.policies,
        started=on.assignments,
        stopped=off.assignments,
        uncovered=tuple(problem.workloads[task].name for task in newly),
        detours=taken.assignments,
        replaced=tuple(
            (problem.enforcement(item[0]), problem.enforcement(item[1]))
            for item in board.moves.policy_changes
            if len(item) > 1 and item[1] in columns
        ),
        state=problem.decision(board.state),
    )
