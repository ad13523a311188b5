"""Whether all that is needed has room: by counting, by packing, and only then by solving.

What is asked for is more than there is where it is so for some function of sizes that never grows
when things are put together: the sizes themselves, or how often a smaller size fits into them
(dual feasible functions: S. P. Fekete, J. Schepers, Mathematical Programming 91, 2001).
"""

from collections.abc import Iterator, Mapping
from itertools import product
from math import floor, prod

import numpy as np

from optimizer.domain.arrays import Bools, Floats
from optimizer.domain.solution import Decision
from optimizer.explain.conflicts.feasibility_problem import all_placed
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem
from optimizer.model.rules import violations

_MOST_MODES = 64
_MOST_SIZES = 12
_TOLERANCE = 1e-6


def check_feasibility(
    problem: Problem, needed: Mapping[str, int], resolve: ProblemSolver
) -> Decision | bool | None:
    """Return a decision that has all that is needed, False where none has, None if not known."""
    if exceeds_capacity(problem, needed):
        return False
    packed = best_fit_decreasing(problem, needed)
    if packed is not None:
        return packed
    solution = resolve(problem)
    answer = all_placed(solution, sum(needed.values()))
    return solution.decision if answer else answer


def exceeds_capacity(problem: Problem, needed: Mapping[str, int]) -> bool:
    """Tell whether all clusters together supply less of some kind than is needed of it."""
    sizes: dict[str, list[tuple[float, int]]] = {}
    for name, count in needed.items():
        task = problem.workloads[problem.workload_index[name]]
        for kind, amount in ((task.kind, task.amount), *task.extras):
            sizes.setdefault(kind, []).append((amount, count))
    return any(_lacking(problem, kind, asked) for kind, asked in sizes.items())


def _lacking(problem: Problem, kind: str, asked: list[tuple[float, int]]) -> bool:
    clusters = list(_supplies(problem, kind))
    distinct = sorted({amount for amount, _ in asked if amount > 0}, reverse=True)
    for size in distinct[:_MOST_SIZES]:
        count = sum(times * floor(amount / size) for amount, times in asked)
        if count > sum(max(_fitting(mode, size) for mode in modes) for modes in clusters):
            return True
    total = sum(amount * times for amount, times in asked)
    most = sum(max(float(mode.sum()) for mode in modes) for modes in clusters)
    return total > most * (1 + _TOLERANCE) + _TOLERANCE


def _fitting(amounts: Floats, size: float) -> float:
    return float(np.floor(amounts / size + _TOLERANCE).sum())


def _supplies(problem: Problem, kind: str) -> Iterator[list[Floats]]:
    """Yield for each cluster what its slots of a kind can be supplied with, mode by mode.

    Where there are too many modes, one that supplies as much as all together.
    """
    numbers: dict[int, list[int]] = {}
    for number, slot in enumerate(problem.resources):
        if slot.kind == kind:
            numbers.setdefault(slot.cluster, []).append(number)
    pools: dict[int, dict[str, list[Floats]]] = {cluster: {} for cluster in numbers}
    for option in problem.policies:
        own = numbers.get(option.cluster, [])
        supplied = dict(option.supplies)
        amounts = np.array([supplied.get(number, 0.0) for number in own])
        if amounts.any():
            pools[option.cluster].setdefault(option.pool, []).append(amounts)
    for cluster, own in numbers.items():
        base, choices = problem.base[own], list(pools[cluster].values())
        if prod(1 + len(options) for options in choices) <= _MOST_MODES:
            yield [base + sum(mode) for mode in product(*([0.0 * base, *o] for o in choices))]
        else:
            yield [base + sum(np.sum(options, axis=0) for options in choices)]


def best_fit_decreasing(problem: Problem, needed: Mapping[str, int]) -> Decision | None:
    """Return a decision that has all that is needed, if the largest first find room at once.

    Every pool takes the policy that supplies most; each takes the slot that it leaves least of.
    """
    options = _largest(problem)
    left, exists = problem.base.copy(), problem.base > 0
    for option in options:
        for slot, amount in problem.policies[option].supplies:
            left[slot] += amount
            exists[slot] = True
    pairs: list[tuple[int, int]] = []
    tasks = [problem.workload_index[name] for name in needed]
    for task in sorted(tasks, key=lambda task: (-problem.workloads[task].amount, task)):
        for _ in range(needed[problem.workloads[task].name]):
            found = _tightest(problem, task, left, exists, pairs)
            if found is None:
                return None
            pairs.append((task, found))
            for at, amount in _taken(problem, task, found):
                left[at] -= amount
    decision = Decision(
        tuple(problem.enforcement(option) for option in options),
        tuple(problem.assignment(*pair) for pair in sorted(pairs)),
    )
    return None if violations(problem, decision) else decision


def _largest(problem: Problem) -> list[int]:
    """Return the option of each pool that supplies most."""
    best: dict[tuple[int, str], tuple[float, int]] = {}
    for number, option in enumerate(problem.policies):
        supply = sum(amount for _, amount in option.supplies), -number
        best[option[:2]] = max(best.get(option[:2], (-1.0, 0)), supply)
    return sorted(-number for _, number in best.values())


def _tightest(
    problem: Problem, task: int, left: Floats, exists: Bools, pairs: list[tuple[int, int]]
) -> int | None:
    """Return the usable slot of which least is left afterwards; None where there is none."""
    usable = ~np.isnan(problem.values[task]) & (left >= problem.workloads[task].amount) & exists
    taken = [problem.resources[slot].cluster for own, slot in pairs if own == task]
    usable &= ~np.isin(problem.resource_cluster, taken)
    for slot in np.flatnonzero(usable)[np.argsort(left[usable], kind="stable")].tolist():
        if all(left[at] >= amount for at, amount in _taken(problem, task, slot)):
            return int(slot)
    return None


def _taken(problem: Problem, task: int, slot: int) -> Iterator[tuple[int, float]]:
    """Yield what a place takes, by slot."""
    found, cluster = problem.workloads[task], problem.resources[slot].cluster
    yield slot, found.amount
    for kind, amount in found.extras:
        yield problem.resource_index[ClusterResource(cluster, kind, NO_DEVICE)], amount
