"""An issue: a part of the input that the optimizer could not use, with the reason.

docs/optimizer.md lists every reason. The JSON field that holds issues is called `gaps`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """Something in the fleet that could not be used; empty fields do not apply."""

    reason: str
    message: str
    cluster: str = ""
    policy: str = ""
    workload: str = ""
    device: str = ""


UNSELECTABLE_REASONS = frozenset(
    {
        "ClusterBeingDeleted",
        "ClusterNotAccepted",
        "ClusterNotJoined",
        "ClusterSetNotAsked",
        "ClusterSetNotBound",
        "ClusterTainted",
    }
)
"""The reasons of issues that name a cluster which OCM can't select, at least for some."""
