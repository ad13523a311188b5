"""Each assignment with its margin and its runner-up, as the wire shows them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from optimizer.domain.solution import Assignment, Solution
from optimizer.explain.margins.margins import Margin
from optimizer.explain.wire_values import assignment_value
from optimizer.model.problem import Problem
from optimizer.wire.explanation import AssignmentReason, Placed, RunnerUp


def assignment_reasons(
    problem: Problem, solution: Solution, placed: Sequence[Placed], found: Mapping[int, Margin]
) -> Iterator[AssignmentReason]:
    """Yield every assignment with its runner-up and its margin, or an upper bound of the margin."""
    for number, (item, assignment) in enumerate(
        zip(placed, solution.decision.assignments, strict=True)
    ):
        known = found.get(number)
        others = known.decision.assignments if known else ()
        yield AssignmentReason(
            **item.model_dump(),
            runner_up=runner_up(problem, assignment),
            margin=known.lost if known and known.exact else None,
            at_most=known.lost if known else None,
            instead=tuple(
                assignment_value(other) for other in others if other.workload == assignment.workload
            ),
        )


def runner_up(problem: Problem, assignment: Assignment) -> RunnerUp | None:
    """Return the workload's best other resource by score alone; None where no other is usable.

    The gain of staying on a current cluster does not count.
    """
    found = problem.indexes(assignment)
    if found is None:
        return None
    workload, taken = found
    scores = problem.values[workload].copy()
    staying = np.isin(
        problem.resource_cluster, np.array(problem.workloads[workload].current, dtype=np.int64)
    )
    scores[staying] -= problem.workloads[workload].move_cost
    scores[taken] = np.nan
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    other = problem.assignment(workload, best)
    return RunnerUp(cluster=other.cluster, device=other.device, score=float(scores[best]))
