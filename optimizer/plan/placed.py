"""Where each workload runs, and what of that an answer shows."""

from collections.abc import Iterator

from optimizer.domain.solution import Decision, Place, Solution
from optimizer.model.problem import Problem, Slot
from optimizer.wire.result import Gap, Placed


def placed(problem: Problem, solution: Solution) -> tuple[Placed, ...]:
    """Return every place taken, with the policy that supplies it and its score."""
    return tuple(
        Placed(
            workload=place.workload,
            cluster=place.cluster,
            policy=", ".join(_supplying(problem, solution.decision, place)),
            device=place.device,
            score=problem.score(place),
        )
        for place in solution.decision.places
    )


def _supplying(problem: Problem, decision: Decision, place: Place) -> Iterator[str]:
    """Yield the policies enforced that supply a place's device; none where the cluster has it."""
    kind = problem.tasks[problem.task_index[place.workload]].kind
    slot = problem.slot_index[Slot(problem.cluster_index[place.cluster], kind, place.device)]
    for choice in decision.choices:
        supplies = problem.options[problem.option_index[choice]].supplies
        if slot in dict(supplies):
            yield choice.policy


def truncated(gaps: tuple[Gap, ...], left: int, *, most: int) -> Iterator[Gap]:
    """Yield the first gaps, then one that says how many more there are; `left` beside these."""
    yield from gaps[:most]
    more = max(0, len(gaps) - most) + left
    if more:
        yield Gap(reason="Truncated", message=f"{more} more gaps are not shown")
