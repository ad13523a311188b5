"""Parts of decisions as the wire shows them."""

from optimizer.domain.solution import Assignment, PolicyEnforcement
from optimizer.wire.explanation import AssignmentRef, EnforcedPolicy


def assignment_value(place: Assignment) -> AssignmentRef:
    """Return an assignment as the wire shows it."""
    return AssignmentRef(workload=place.workload, cluster=place.cluster, device=place.device)


def policy_value(choice: PolicyEnforcement) -> EnforcedPolicy:
    """Return an enforced policy as the wire shows it."""
    return EnforcedPolicy(cluster=choice.cluster, policy=choice.policy)
