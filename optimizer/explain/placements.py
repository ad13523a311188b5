"""The placements of a solution, as a result shows them."""

from collections.abc import Iterator

from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.model.problem import ClusterResource, Problem
from optimizer.wire.result import Placed


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
