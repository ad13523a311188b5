"""For every place taken: what else there was, and what is lost without it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from optimizer.domain.solution import Assignment, Solution
from optimizer.explain.margins.margins import Margin
from optimizer.explain.wire_values import assignment_value
from optimizer.model.problem import Problem
from optimizer.wire.explanation import AssignmentReason, RunnerUp
from optimizer.wire.result import Placed


def assignment_reasons(
    problem: Problem, solution: Solution, placed: Sequence[Placed], found: Mapping[int, Margin]
) -> Iterator[AssignmentReason]:
    """Yield every place with its runner-up and its margin, or what that is at most."""
    for number, (item, place) in enumerate(zip(placed, solution.decision.assignments, strict=True)):
        known = found.get(number)
        others = known.decision.assignments if known else ()
        yield AssignmentReason(
            **item.model_dump(),
            runner_up=runner_up(problem, place),
            margin=known.lost if known and known.exact else None,
            at_most=known.lost if known else None,
            instead=tuple(
                assignment_value(other) for other in others if other.workload == place.workload
            ),
        )


def runner_up(problem: Problem, place: Assignment) -> RunnerUp | None:
    """Return the best other place of a workload by score alone; None where no other is usable."""
    found = problem.indexes(place)
    if found is None:
        return None
    task, taken = found
    scores = problem.values[task].copy()
    staying = np.isin(
        problem.resource_cluster, np.array(problem.workloads[task].current, dtype=np.int64)
    )
    scores[staying] -= problem.workloads[task].move_cost
    scores[taken] = np.nan
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    other = problem.assignment(task, best)
    return RunnerUp(cluster=other.cluster, device=other.device, score=float(scores[best]))
