"""Where each workload runs, and what of that an answer shows."""

from collections.abc import Iterator

from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.model.problem import ClusterResource, Problem
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
        for place in solution.decision.assignments
    )


def _supplying(problem: Problem, decision: Decision, place: Assignment) -> Iterator[str]:
    """Yield the policies enforced that supply a place's device; none where the cluster has it."""
    kind = problem.workloads[problem.workload_index[place.workload]].kind
    slot = problem.resource_index[
        ClusterResource(problem.cluster_index[place.cluster], kind, place.device)
    ]
    for choice in decision.policies:
        supplies = problem.policies[problem.policy_index[choice]].supplies
        if slot in dict(supplies):
            yield choice.policy


def truncated(gaps: tuple[Gap, ...], left: int, *, most: int) -> Iterator[Gap]:
    """Yield the first gaps, then one that says how many more there are; `left` beside these."""
    yield from gaps[:most]
    more = max(0, len(gaps) - most) + left
    if more:
        yield Gap(reason="Truncated", message=f"{more} more gaps are not shown")
