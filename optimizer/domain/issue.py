"""An issue: a part of the input that the optimizer could not use, with the reason.

docs/reference/optimizer-issues.md lists every reason. The JSON field that holds issues is called
`gaps`.
"""

from dataclasses import dataclass

from dsf.api.untrusted_text import UntrustedName, one_line


@dataclass(frozen=True, slots=True)
class Issue:
    """Something in the fleet that could not be used; empty fields do not apply."""

    reason: str
    message: str
    cluster: str = ""
    policy: str = ""
    workload: str = ""
    device: str = ""

    def __post_init__(self) -> None:
        """Give each text the type by which a message shows it."""
        object.__setattr__(self, "message", one_line(self.message))
        for name in ("cluster", "policy", "workload", "device"):
            object.__setattr__(self, name, UntrustedName(getattr(self, name)))


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

TRUST_REASONS = frozenset({"UntrustedScore"})
"""The reasons of issues that name a cluster whose forecasts lost influence."""

OTHERS_REASONS = frozenset({"HeldByOthers", "UsedByOthers", "UsedWithoutTheHub"})
"""The reasons of issues that name what others have of a cluster."""

TAKEN_REASONS = OTHERS_REASONS | {"NodesUnavailable"}
"""The reasons of issues that name what a plan can't have of a cluster."""

PLANNED_ANYWAY_REASONS = frozenset({"PodsPending", "RequestContradicted", "UnknownWorkloads"})
"""The reasons of issues that name a workload which is planned all the same."""
