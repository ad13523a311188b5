"""The responses of GET /plans and GET /plans/{digest}, and the steps of a recorded rollout."""

from datetime import datetime

from pydantic import Field

from dsf.api.crd.placement_plan import PlanPhase
from dsf.api.optimization import Optimization
from optimizer.domain.issue import Issue
from optimizer.wire.base import Document, GeneratedObject, Name, ResultPart, Sentence, Text
from optimizer.wire.explanation import AssignmentRef, EnforcedPolicy
from optimizer.wire.result import ObjectRef, OptimizeResult, PlannedChange, Unplaced, WorkloadMove
from optimizer.wire.rollout import ReplicaRef, StepActions


class PlanSummary(ResultPart):
    """A recorded plan without its content, and what became of it."""

    name: Name = Field(description="Name of the PlacementPlan.")
    optimization: Name
    revision: int
    digest: Name
    request_digest: Name
    requested_by: Name = Field(description="Empty if nobody was authenticated.")
    created: datetime | None
    phase: PlanPhase
    reason: Name = Field(description="Reason of the condition that changed last.")
    message: Text = Field(description="Message of that condition.")
    solver_failure: Sentence = Field(
        "", description="Why its solver failed: a better plan may exist; or empty."
    )
    objective: float
    bound: float | None
    gap: float | None
    created_objects: int
    patched_objects: int
    deleted_objects: int
    moves: int | None = Field(
        description="Replicas that left their cluster, or restarted there; null: not recorded,"
        " as by an earlier version."
    )
    first_placements: int | None = Field(
        description="Workloads that ran nowhere before and got a place; null: not recorded."
    )
    unplaced_workloads: int | None = Field(
        description="Workloads with fewer places than they asked for; null: not recorded."
    )
    restored_revision: int | None = Field(
        description="The revision that a rollback restored by this plan."
    )
    intact: bool = Field(
        description="False if somebody edited the record, or the optimizer did not sign it."
    )


class ScoreVersion(ResultPart):
    """The version of an AddOnPlacementScore that a plan rested on."""

    cluster: Name
    name: Name
    resource_version: Name


class PlanRecord(PlanSummary):
    """A recorded plan as a whole; without a readable content its lists are empty."""

    request: Document = Field(description="The body of POST /optimize, without dryRun.")
    policies: tuple[EnforcedPolicy, ...]
    assignments: tuple[AssignmentRef, ...]
    unplaced: tuple[Unplaced, ...] = Field(
        (), description="Workloads with fewer places than they asked for."
    )
    objects: tuple[Document, ...] = Field(description="The generated objects, as planned.")
    changes: tuple[PlannedChange, ...]
    moved: tuple[WorkloadMove, ...] | None = Field(
        None,
        description="Workloads that the plan before, of the same optimization, had elsewhere;"
        " without scores. null: its record is gone or can't be read.",
    )
    scores: int = Field(description="Number of AddOnPlacementScores that were read.")
    score_versions: tuple[ScoreVersion, ...] = Field(
        description="The first of them, by cluster and name."
    )


class PlanList(ResultPart):
    """The response of GET /plans: the plans of each optimization, the newest first."""

    namespace: Name
    items: tuple[PlanSummary, ...]
    issues: tuple[Issue, ...] = Field(
        (), description="Why the hub keeps no plans, if it keeps none."
    )


class RollbackResult(OptimizeResult):
    """The response of POST /rollback: a plan that restores an earlier one."""

    optimization: Name = Field(description="The optimization whose plan is restored.")
    from_revision: int = Field(description="The revision that was current.")
    to_revision: int = Field(description="The revision that is restored.")
    workload: Name | None = Field(
        None, description="The only workload that goes back; all others stay."
    )


class RecordedStep(ResultPart):
    """A step as the record has it: its actions, and what it writes and deletes going forward."""

    actions: StepActions
    write: tuple[GeneratedObject, ...] = ()
    delete: tuple[ObjectRef, ...] = ()


class RolloutPace(ResultPart):
    """How long a step may take, and how long what it enforced must stay compliant, in seconds."""

    progress_deadline_seconds: int = 600
    min_ready_seconds: int = 60


class RolloutPlan(ResultPart):
    """All steps of a rollout, decided when it was planned; the record on the hub carries it.

    `policies`, `replicas` and `objects` are what there was at the start.
    """

    namespace: Name
    optimization: Name
    pace: RolloutPace
    policies: tuple[EnforcedPolicy, ...]
    replicas: tuple[ReplicaRef, ...]
    objects: tuple[GeneratedObject, ...]
    steps: tuple[RecordedStep, ...]

    @property
    def actions(self) -> tuple[StepActions, ...]:
        """What each step does."""
        return tuple(step.actions for step in self.steps)

    @property
    def owner(self) -> Optimization:
        """The optimization whose objects are written."""
        return Optimization(self.namespace, self.optimization)
