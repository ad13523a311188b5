"""Whether all that is needed can run: by counting, by packing, and only then by solving.

Counting proves that there is no room where some dual feasible function of the sizes says so: the
sizes themselves, or how often a smaller size fits into them (S. P. Fekete, J. Schepers, New classes
of fast lower bounds for bin packing problems, Mathematical Programming 91, 2001).
"""

from collections.abc import Iterator, Mapping
from itertools import product
from math import floor, prod

import numpy as np

from optimizer.domain.arrays import Floats, members_by_key
from optimizer.domain.solution import Decision
from optimizer.explain.conflicts.feasibility_problem import all_placed
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.explain.tuning import COUNTED_COMBINATIONS, COUNTED_SIZES
from optimizer.model.allocation import Allocation
from optimizer.model.problem import Problem
from optimizer.model.rules import violations

_TOLERANCE = 1e-6
"""Relative: amounts that differ by less count as equal."""


def check_feasibility(
    problem: Problem, needed: Mapping[str, int], solve: ProblemSolver
) -> Decision | bool | None:
    """Return a decision that has all that is needed, False where none has, None if not known."""
    if exceeds_capacity(problem, needed):
        return False
    packed = best_fit_decreasing(problem, needed)
    if packed is not None:
        return packed
    solution = solve(problem)
    answer = all_placed(solution, sum(needed.values()))
    return solution.decision if answer else answer


def exceeds_capacity(problem: Problem, needed: Mapping[str, int]) -> bool:
    """Tell whether more of some kind is needed than all clusters together can supply."""
    sizes: dict[str, list[tuple[float, int]]] = {}
    for name, count in needed.items():
        workload = problem.workloads[problem.workload_index[name]]
        for kind, amount in ((workload.kind, workload.amount), *workload.requests):
            sizes.setdefault(kind, []).append((amount, count))
    return any(_exceeds(problem, kind, asked) for kind, asked in sizes.items())


def best_fit_decreasing(problem: Problem, needed: Mapping[str, int]) -> Decision | None:
    """Return a decision that has all that is needed, if one greedy pass finds it.

    Every pool enforces the policy that supplies most. The largest workload comes first and takes
    the resource that has least left afterwards.
    """
    state = Allocation(problem)
    for policy in _largest_policies(problem):
        state.enforce(policy)
    numbers = [problem.workload_index[name] for name in needed]
    for number in sorted(numbers, key=lambda item: (-problem.workloads[item].amount, item)):
        for _ in range(needed[problem.workloads[number].name]):
            resource = _tightest(state, number)
            if resource is None:
                return None
            state.assign(number, resource)
    decision = state.decision()
    return None if violations(problem, decision) else decision


def _exceeds(problem: Problem, kind: str, asked: list[tuple[float, int]]) -> bool:
    clusters = list(_supplies(problem, kind))
    distinct = sorted({amount for amount, _ in asked if amount > 0}, reverse=True)
    for size in distinct[:COUNTED_SIZES]:
        count = sum(times * floor(amount / size) for amount, times in asked)
        fitting = (
            max(float(np.floor(amounts / size + _TOLERANCE).sum()) for amounts in some)
            for some in clusters
        )
        if count > sum(fitting):
            return True
    total = sum(amount * times for amount, times in asked)
    most = sum(max(float(amounts.sum()) for amounts in some) for some in clusters)
    return total > most * (1 + _TOLERANCE) + _TOLERANCE


def _supplies(problem: Problem, kind: str) -> Iterator[list[Floats]]:
    """Yield for each cluster the amounts of its resources of a kind under each policy combination.

    Above `COUNTED_COMBINATIONS` it is one array, with the supplies of all policies added up.
    """
    numbers = members_by_key(
        (item.cluster, number) for number, item in enumerate(problem.resources) if item.kind == kind
    )
    pools: dict[int, dict[str, list[Floats]]] = {cluster: {} for cluster in numbers}
    for policy in problem.policies:
        supplied = dict(policy.supplies)
        amounts = np.array([supplied.get(at, 0.0) for at in numbers.get(policy.cluster, [])])
        if amounts.any():
            pools[policy.cluster].setdefault(policy.pool, []).append(amounts)
    for cluster, own in numbers.items():
        base, choices = problem.base[own], list(pools[cluster].values())
        if prod(1 + len(some) for some in choices) <= COUNTED_COMBINATIONS:
            yield [
                base + sum(found) for found in product(*([0.0 * base, *some] for some in choices))
            ]
        else:
            yield [base + sum(np.sum(some, axis=0) for some in choices)]


def _largest_policies(problem: Problem) -> list[int]:
    """Return the policy of each pool that supplies most."""
    best: dict[tuple[int, str], tuple[float, int]] = {}
    for number, policy in enumerate(problem.policies):
        pool = policy.cluster, policy.pool
        supply = sum(amount for _, amount in policy.supplies), -number
        best[pool] = max(best.get(pool, (-1.0, 0)), supply)
    return sorted(-number for _, number in best.values())


def _tightest(state: Allocation, workload: int) -> int | None:
    """Return the resource that fits and has least left; None where none fits."""
    problem = state.problem
    taken = [problem.resources[at].cluster for at in state.resources_of[workload]]
    usable = ~np.isnan(problem.values[workload]) & ~np.isin(problem.resource_cluster, taken)
    least = problem.workloads[workload].amount * (1 - _TOLERANCE)
    usable &= state.exists & (state.residual >= least)  # only speed: `has_capacity` decides
    for resource in np.flatnonzero(usable)[np.argsort(state.residual[usable], kind="stable")]:
        if state.has_capacity(workload, int(resource)):
            return int(resource)
    return None
