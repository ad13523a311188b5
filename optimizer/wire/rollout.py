"""Rollouts on the wire: the steps of a plan, how far they are, and what they wait for."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from dsf.api.crd.placement_plan import RolloutPhase
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.explanation import EnforcedPolicy, GpusToDrain

RolloutStrategy = Literal["AllAtOnce", "Stepwise"]

ROLLOUT_IN_PROGRESS = "RolloutInProgress"
"""The reason of what waits because steps of a rollout are being made."""

RolloutCommand = Literal["pause", "resume", "undo", "cancel"]


class ReplicaRef(ResultPart):
    """A replica of a workload: the workload on one cluster."""

    workload: Name
    cluster: Name


class UncoveredOthers(ResultPart):
    """Workloads of others on one cluster that a plan uncovers, because its policies change there.

    A cluster has one claim for all its policies. OCM stops what requires it until all of them are
    compliant again.
    """

    cluster: Name
    owner: Name = Field(description="The optimization, or who else placed them.")
    namespace: Name = Field("", description="Empty if the caller may not know it.")
    workloads: tuple[Name, ...] = Field((), description="Empty if the caller may not know them.")
    count: int


class StepActions(ResultPart):
    """What one step of a rollout changes; its writes may happen in any order."""

    enforce: tuple[EnforcedPolicy, ...] = ()
    release: tuple[EnforcedPolicy, ...] = ()
    start: tuple[ReplicaRef, ...] = ()
    stop: tuple[ReplicaRef, ...] = ()
    keep: tuple[ReplicaRef, ...] = Field(
        (), description="Replicas that run on without a claim while their policy is replaced."
    )
    gpus: tuple[GpusToDrain, ...] = Field(
        (), description="GPUs that must be idle before this step."
    )
    uncovered: tuple[Name, ...] = Field(
        (), description="Workloads with fewer replicas in this step than at start and goal."
    )
    uncovers_others: tuple[UncoveredOthers, ...] = Field(
        (), description="Workloads of others that this step uncovers.", exclude_if=lambda v: not v
    )


class RolloutWait(ResultPart):
    """What a step waits for, with the reason that OCM gives, and since when it has that reason."""

    reason: Name
    message: Sentence
    since: datetime | None = None


class StepSpan(ResultPart):
    """When a step was made, or undone."""

    step: int = Field(description="Number of the step, counted from 1.")
    back: bool = Field(False, description="The step was undone.")
    began: datetime
    ended: datetime | None = Field(
        None, description="null: it is not complete. Given up to turn back, it ended, too."
    )


class RolloutStatus(ResultPart):
    """How far a rollout is, and what it waits for."""

    namespace: Name
    optimization: Name
    record: Name = Field(description="The PlacementPlan that is rolled out.")
    digest: Name = Field(description="Digest of the plan.")
    phase: RolloutPhase
    paused: bool = False
    turning_back: bool = False
    step: int = Field(description="The step that is being made, or that was made last; 0: none.")
    steps: tuple[StepActions, ...]
    waiting_for: tuple[RolloutWait, ...] = ()
    reason: Name = Field(description="Reason of the condition Progressing.")
    message: Sentence
    last_progress: datetime | None = None
    step_times: tuple[StepSpan, ...] = Field(
        (),
        description="By time, the newest if they are many. Steps that an earlier version of the"
        " optimizer made have none.",
    )

    @property
    def ended(self) -> bool:
        """Whether nothing will be written any more."""
        return self.phase != "Progressing"


class RolloutList(ResultPart):
    """The response of GET /rollouts: the newest rollout of each optimization."""

    items: tuple[RolloutStatus, ...]
