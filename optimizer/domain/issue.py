"""An issue: a part of the input that the optimizer could not use, with the reason.

docs/reference/optimizer-issues.md lists every reason. The JSON field that holds issues is called
`gaps`.
"""

from collections.abc import Collection, Iterable, Mapping
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


@dataclass(frozen=True, slots=True)
class ScoreIssue(Issue):
    """An issue of the score of an app."""

    app: str = ""


@dataclass(frozen=True, slots=True)
class TakenIssue(Issue):
    """An issue of what others have of a cluster: the kinds and devices; "" is any device.

    `owner`: in words. `users`: the workloads that use it. Each is empty if it is not known.
    `withheld`: how much more of a device the cluster or a policy would supply without it, if known.
    """

    owner: str = ""
    taken: frozenset[tuple[str, str]] = frozenset()
    users: tuple[str, ...] = ()
    withheld: frozenset[tuple[str, str, float]] = frozenset()

    def concerns(self, kinds: Collection[str], devices: Collection[str]) -> bool:
        """Tell whether something of these kinds is taken, and of these devices if there are any."""
        return any(
            kind in kinds and (not devices or device in ("", *devices))
            for kind, device in self.taken
        )


def withheld(issues: Iterable[Issue], cluster: str) -> Mapping[tuple[str, str], float]:
    """Return how much more of each device a cluster would supply without what others hold."""
    found = (i.withheld for i in issues if isinstance(i, TakenIssue) and i.cluster == cluster)
    return {(kind, device): amount for some in found for kind, device, amount in some}


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

NODES_UNAVAILABLE = "NodesUnavailable"
"""The reason of the issue that names what a cluster has on nodes where nothing new starts."""

TAKEN_REASONS = OTHERS_REASONS | {NODES_UNAVAILABLE}
"""The reasons of issues that name what a plan can't have of a cluster."""

PLANNED_ANYWAY_REASONS = frozenset({"PodsPending", "RequestContradicted", "UnknownWorkloads"})
"""The reasons of issues that name a workload which is planned all the same."""
