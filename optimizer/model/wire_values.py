"""Parts of decisions as the wire shows them."""

from collections.abc import Iterator

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.model.parameters import ClusterResource
from optimizer.model.problem import Problem
from optimizer.wire.explanation import AssignmentRef, EnforcedPolicy, Placed


def assignment_value(assignment: Assignment) -> AssignmentRef:
    """Return an assignment as the wire shows it."""
    return AssignmentRef(**assignment._asdict())


def policy_value(choice: PolicyEnforcement) -> EnforcedPolicy:
    """Return an enforced policy as the wire shows it."""
    return EnforcedPolicy(**choice._asdict())


def placed(problem: Problem, solution: Solution) -> tuple[Placed, ...]:
    """Return every assignment of a solution, with the policy that supplies it and its score."""
    return tuple(
        Placed(
            **item._asdict(),
            policy=", ".join(_supplying(problem, solution.decision, item)),
            score=problem.score(item),
        )
        for item in solution.decision.assignments
    )


def _supplying(problem: Problem, decision: Decision, assignment: Assignment) -> Iterator[str]:
    """Yield the enforced policies that supply an assignment's device; none if its cluster does."""
    kind = problem.workloads[problem.workload_index[assignment.workload]].kind
    cluster = problem.cluster_index[assignment.cluster]
    resource = problem.resource_index[ClusterResource(cluster, kind, assignment.device)]
    for choice in decision.policies:
        if resource in dict(problem.policies[problem.policy_index[choice]].supplies):
            yield choice.policy
