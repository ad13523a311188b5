"""PlacementPlan: the record of one plan of the optimizer, and what became of it."""

from typing import Literal

from pydantic import ConfigDict, Field

from dsf.api.crd.structural_schema import AtomicList, ConditionList, Timestamp, rule, rules
from dsf.api.wire_model import WireModel

PlanPhase = Literal["Applying", "Applied", "Failed", "Superseded", "RolledBack"]

RolloutPhase = Literal["Progressing", "Complete", "TurnedBack", "Cancelled"]

LISTED_SCORE_VERSIONS = 100
"""AddOnPlacementScores that a record lists; more would make kubectl's output hard to read."""


class RecordedScoreVersion(WireModel):
    """The version of an AddOnPlacementScore that the plan rested on."""

    cluster: str = Field(description="The managed cluster whose score it is.")
    name: str = Field(description="Name of the AddOnPlacementScore.")
    resource_version: str = Field(description="Its metadata.resourceVersion when it was read.")


class RecordedScores(WireModel):
    """The AddOnPlacementScores that the plan rested on."""

    count: int = Field(description="Number of AddOnPlacementScores that were read.")
    digest: str = Field(description="SHA-256 of the clusters, names and versions of all of them.")
    versions: AtomicList[RecordedScoreVersion] | None = Field(
        None, description=f"The first {LISTED_SCORE_VERSIONS} of them, by cluster and name."
    )


class RecordedChanges(WireModel):
    """Numbers of what the plan writes and moves; the names are in the content."""

    create: int = Field(0, description="Objects that it creates.")
    patch: int = Field(0, description="Objects that it changes.")
    delete: int = Field(0, description="Objects that it deletes.")
    moves: int | None = Field(  # a default would be added to older records, and look like an edit
        None, description="Replicas that leave their cluster, or restart there."
    )
    first_placements: int | None = Field(
        None, description="Workloads that ran nowhere before and get a place."
    )
    unplaced: int | None = Field(
        None, description="Workloads that get fewer places than they ask for."
    )


class RecordedRollback(WireModel):
    """Which revision was current, and which one was restored."""

    from_revision: int = Field(description="The revision that was current.")
    to_revision: int = Field(description="The revision that was restored.")
    workload: str | None = Field(
        None, description="The only workload that went back; all others stayed."
    )


class PlacementPlanSpec(WireModel):
    """A plan as it was decided. A record is written once and never changed."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self == oldSelf", "a PlacementPlan is a record: its spec can't be changed")
        )
    )

    optimization: str = Field(
        max_length=63, description="Name of the optimization that the revision counts in."
    )
    revision: int = Field(ge=1, description="Number of the plan, counted from 1.")
    digest: str = Field(description="SHA-256 of the decision and of the facts that it depends on.")
    request_digest: str = Field(description="SHA-256 of the request.")
    objects_digest: str = Field(
        description="SHA-256 of the generated objects; equal plans have the same."
    )
    requested_by: str | None = Field(
        None, description="The authenticated user; absent if nobody is checked."
    )
    objective: float = Field(description="Sum of the scores, minus the costs of changes.")
    bound: float | None = Field(None, description="No plan was worth more than this.")
    gap: float | None = Field(None, description="Optimality gap: (bound - objective) / objective.")
    scores: RecordedScores | None = Field(
        None, description="The versions of the scores that the plan rested on."
    )
    changes: RecordedChanges | None = Field(None, description="What the plan changed.")
    rollback: RecordedRollback | None = Field(
        None, description="Present if the plan restored an earlier one."
    )
    content: str | None = Field(
        None,
        description="Request, decision, generated objects and changes: JSON, gzip, base64."
        " Absent if it would be too large for the hub.",
    )
    rollout: str | None = Field(
        None,
        description="The steps of a Stepwise rollout: JSON, gzip, base64. Absent if the plan is"
        " written all at once.",
    )
    record_digest: str = Field(description="SHA-256 of all other fields; it tells an edit by hand.")


class RecordedWait(WireModel):
    """What a step of a rollout waits for."""

    reason: str = Field(description="Why, in one word for programs, such as MinReadySeconds.")
    message: str = Field(description="What is waited for, in words for people.")
    since: Timestamp | None = Field(None, description="Since when it is waited for.")


MAX_STEP_TIMES = 500
"""Steps whose times a record keeps, the newest: some 50 kB."""


class StepTime(WireModel):
    """When a step of a rollout was made, or undone."""

    step: int = Field(ge=0, description="Number of the step, counted from 1.")
    back: bool = Field(False, description="The step was undone.")
    began: Timestamp = Field(description="When it began.")
    ended: Timestamp | None = Field(
        None, description="When it was complete, or given up to turn back; absent if it is not."
    )


class RecordedProgress(WireModel):
    """How far a Stepwise rollout is. Change it with `dsf rollout`, not by hand."""

    phase: RolloutPhase = Field(
        "Progressing",
        description="Progressing: steps are left. Complete: the plan is reached. TurnedBack:"
        " the state before the plan is reached again. Cancelled: no further step is made.",
    )
    source: int = Field(0, ge=0, description="State that the step in progress leaves.")
    target: int = Field(
        0, ge=0, description="State that is being made; equal to source: no step in progress."
    )
    steps: int = Field(0, ge=0, description="Number of steps.")
    turning_back: bool = Field(
        False, description="Steps are undone, towards the state before the plan."
    )
    paused: bool = Field(False, description="No step begins until it is resumed.")
    overdue: bool = Field(False, description="The progress deadline has passed.")
    ready_since: Timestamp | None = Field(
        None,
        description="Since when all that the step needs is there; minReadySeconds count from here.",
    )
    last_progress: Timestamp | None = Field(
        None,
        description="When a step was last completed or the rollout resumed; the progress"
        " deadline counts from here.",
    )
    waiting_for: AtomicList[RecordedWait] = Field(
        default_factory=list,
        description="What the step in progress waits for; empty if for nothing.",
    )
    step_times: AtomicList[StepTime] | None = Field(
        None, description=f"When the last {MAX_STEP_TIMES} steps were made, in the order of time."
    )
    signature: str | None = Field(None, description="Proof that the optimizer wrote this progress.")


class PlacementPlanStatus(WireModel):
    """What became of the plan."""

    phase: PlanPhase | None = Field(
        None,
        description="Applying: being written. Applied: written. Failed: some writes were"
        " refused or interrupted. Superseded: a later plan was applied, or the namespace was"
        " reset. RolledBack: a rollback replaced it.",
    )
    rollout: RecordedProgress | None = Field(
        None, description="Present if the plan is rolled out step by step."
    )
    signature: str | None = Field(
        None,
        description="Proof that the optimizer wrote this record: HMAC-SHA256 of metadata.uid"
        " and spec. Without it nothing is rolled out or restored.",
    )
    conditions: ConditionList | None = None
