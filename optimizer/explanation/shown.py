"""Decisions as explanations show them."""

from optimizer.explanation.results import Enforced, Spot
from optimizer.solution import Choice, Place


def spot(place: Place) -> Spot:
    """Return a place as it is shown."""
    return Spot(workload=place.workload, cluster=place.cluster, device=place.device)


def enforced(choice: Choice) -> Enforced:
    """Return a choice as it is shown."""
    return Enforced(cluster=choice.cluster, policy=choice.policy)
