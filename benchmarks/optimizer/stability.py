"""How much of what runs now stays if a fleet is solved again after a few scores changed.

python -m benchmarks.optimizer.stability

`left` counts the moves that `reduce_moves` could still undo without changing the objective.
"""

import time
from dataclasses import replace

import numpy as np

from benchmarks.optimizer.instances import Kind, instance, problem
from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.solve.move_reduction import reduce_moves
from optimizer.solve.strategy import solve_problem

_KINDS: tuple[Kind, ...] = ("dist", "prof")
_CHANGED = 6  # workloads
_BY = 5  # points
_GAP = 0.0025
_SECONDS = 60.0


def changed(given: Problem, decision: Decision, seed: int = 3) -> Problem:
    """Return the problem with a decision as the current state and a few changed scores."""
    random, values = np.random.default_rng(seed), given.values.copy()
    for task in random.choice(len(given.workloads), _CHANGED, replace=False).tolist():
        drawn = random.integers(-_BY, _BY + 1, values.shape[1])
        values[task] = np.clip(values[task] + drawn, 0, 100)
    at = {place.workload: (given.cluster_index[place.cluster],) for place in decision.assignments}
    enforced = set(decision.policies)
    return replace(
        given,
        values=values,
        workloads=tuple(replace(task, current=at.get(task.name, ())) for task in given.workloads),
        policies=tuple(
            option._replace(current=given.enforcement(number) in enforced)
            for number, option in enumerate(given.policies)
        ),
    )


def moved(given: Problem, decision: Decision) -> int:
    """Return how many workloads run elsewhere than now."""
    return sum(
        given.cluster_index[place.cluster]
        not in given.workloads[given.workload_index[place.workload]].current
        for place in decision.assignments
    )


def main() -> None:
    """Print how many workloads and policies of 100 x 200 change."""
    for kind in _KINDS:
        given = problem(instance(100, 200, kind))
        first = solve_problem(given, solver="highs", time_limit_seconds=_SECONDS, gap=_GAP).decision
        again, before = changed(given, first), time.process_time()
        second = solve_problem(
            again, solver="highs", time_limit_seconds=_SECONDS, gap=_GAP
        ).decision
        cpu = time.process_time() - before
        more = reduce_moves(again, second, lambda: False)
        print(
            f"100 x 200 {kind}: {moved(again, second)} workloads moved,"
            f" {moved(again, second) - moved(again, more)} left,"
            f" {len(set(second.policies) - set(first.policies))} policies changed, {cpu:.1f} CPU s"
        )


if __name__ == "__main__":
    main()
