"""The response of GET /placements/status: what was decided next to what OCM has made of it."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.result import Unplaced

LandingState = Literal[
    "Planned", "WaitingForPolicy", "WaitingForClaim", "WaitingForPods", "Landed", "Refused"
]


class ReportedPods(ResultPart):
    """The Pods of a workload on a cluster, as status feedback or a NodeInventory reports them."""

    ready: int
    wanted: int = Field(description="Pods that its manifests ask for; else those that there are.")
    pending: int = Field(0, description="Pods that do not run yet.")


class WorkloadLanding(ResultPart):
    """A workload on a cluster that its Placement names, and how far OCM is with it there."""

    workload: Name
    cluster: Name
    state: LandingState
    reason: Name = Field(description="The reason that OCM gives, or ours if it has none.")
    message: Sentence
    since: datetime | None = Field(
        None,
        description="lastTransitionTime of the condition that tells it; null: none tells. Of"
        " pending Pods, when the oldest was created.",
    )
    pods: ReportedPods | None = Field(
        None, description="Once its ManifestWork is available; null: nobody reports its Pods."
    )


class BoundPolicy(ResultPart):
    """A policy that a generated PlacementBinding binds to a cluster, and what the hub says of it.

    `compliance` is empty until OCM reports any; `claim` is the cluster's policy-watcher-claim.
    """

    cluster: Name
    policy: Name
    compliance: Name = ""
    claim: Name = ""


class PlacementDrift(ResultPart):
    """A difference between what was decided and the hub that waiting does not remove."""

    reason: Name
    kind: Name
    name: Name
    message: Sentence
    next: Sentence = Field(
        "", description="What the next plan does about it, or what a person can do."
    )

    @property
    def sentence(self) -> str:
        """Which object differs, and how."""
        return f"{self.kind} {self.name}: {self.message}"


class SolverFailure(ResultPart):
    """A plan in force that was the best known when its solver failed."""

    optimization: Name
    revision: int
    cause: Name
    message: Sentence


class UnplacedByPlan(Unplaced):
    """A workload that a plan gives fewer places than it asks for, or a later step of a rollout."""

    plan: Name = Field(description="Name of the PlacementPlan, which is in force or rolled out.")
    since: datetime | None = Field(
        description="When the first of the consecutive plans that left it out was recorded."
    )
    earlier: bool = Field(
        False, description="True: it may have begun before, because no record says what was then."
    )


class NotCompared(ResultPart):
    """Why the hub could not be compared with plans in force, so that their drift is not known."""

    reason: Name
    message: Sentence


class PlacementStatus(ResultPart):
    """Decided and real, side by side, for the generated objects of one namespace."""

    namespace: Name
    landed: bool = Field(description="Every workload has landed; false if there is none.")
    workloads: tuple[WorkloadLanding, ...]
    policies: tuple[BoundPolicy, ...]
    drift: tuple[PlacementDrift, ...]
    unbound_policies: tuple[Name, ...] = Field(
        description="Policies that no PlacementBinding names."
    )
    solver_failures: tuple[SolverFailure, ...] = Field(
        (), description="Plans in force whose solver failed: a new plan may be better."
    )
    unplaced: tuple[UnplacedByPlan, ...] = Field(
        (), description="Why workloads lack a place, as recorded plans say."
    )
    not_compared: tuple[NotCompared, ...] = Field(
        (), description="Why drift from plans in force is not known; empty: it is."
    )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is generated or in force."""
        parts = (self.workloads, self.policies, self.drift, self.unbound_policies)
        return not any((*parts, self.solver_failures))
