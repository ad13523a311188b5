"""Decisions as explanations show them."""

from optimizer.domain.solution import Assignment, PolicyEnforcement
from optimizer.wire.explanation import AssignmentRef, EnforcedPolicy


def assignment_value(place: Assignment) -> AssignmentRef:
    """Return a place as it is shown."""
    return AssignmentRef(workload=place.workload, cluster=place.cluster, device=place.device)


def policy_value(choice: PolicyEnforcement) -> EnforcedPolicy:
    """Return a choice as it is shown."""
    return EnforcedPolicy(cluster=choice.cluster, policy=choice.policy)
