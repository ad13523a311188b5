"""Decisions as explanations show them."""

from optimizer.domain.solution import Choice, Place
from optimizer.wire.explanation import Enforced, Spot


def spot(place: Place) -> Spot:
    """Return a place as it is shown."""
    return Spot(workload=place.workload, cluster=place.cluster, device=place.device)


def enforced(choice: Choice) -> Enforced:
    """Return a choice as it is shown."""
    return Enforced(cluster=choice.cluster, policy=choice.policy)
