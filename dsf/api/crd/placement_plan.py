"""PlacementPlan: the record of one plan of the optimizer, and what became of it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dsf.api.crd.condition_schema import ConditionList
from dsf.api.crd.structural_schema import rule, rules
from dsf.api.wire_model import WireModel

PlanPhase = Literal["Applying", "Applied", "Failed", "Superseded", "RolledBack"]

RolloutPhase = Literal["Progressing", "Complete", "TurnedBack", "Cancelled"]

LISTED_SCORE_VERSIONS = 100
"""AddOnPlacementScores that a record lists; more would make kubectl's output hard to read."""


class RecordedScoreVersion(WireModel):
    """The version of an AddOnPlacementScore that the plan rested on."""

    cluster: Annotated[str, Field(description="The managed cluster whose score it is.")]
    name: Annotated[str, Field(description="Name of the AddOnPlacementScore.")]
    resource_version: Annotated[
        str, Field(description="Its metadata.resourceVersion when it was read.")
    ]


class RecordedScores(WireModel):
    """The AddOnPlacementScores that the plan rested on."""

    count: Annotated[int, Field(description="Number of AddOnPlacementScores that were read.")]
    digest: Annotated[
        str, Field(description="SHA-256 of the clusters, names and versions of all of them.")
    ]
    versions: Annotated[
        list[RecordedScoreVersion] | None,
        Field(
            default=None,
            description=f"The first {LISTED_SCORE_VERSIONS} of them, by cluster and name.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ]


class RecordedChanges(WireModel):
    """Numbers of the objects that the plan writes; their names are in the content."""

    create: Annotated[int, Field(description="Objects that it creates.")] = 0
    patch: Annotated[int, Field(description="Objects that it changes.")] = 0
    delete: Annotated[int, Field(description="Objects that it deletes.")] = 0


class RecordedRollback(WireModel):
    """Which revision was current, and which one was restored."""

    from_revision: Annotated[int, Field(description="The revision that was current.")]
    to_revision: Annotated[int, Field(description="The revision that was restored.")]


class PlacementPlanSpec(WireModel):
    """A plan as it was decided. A record is written once and never changed."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self == oldSelf", "a PlacementPlan is a record: its spec can't be changed")
        )
    )

    optimization: Annotated[
        str,
        Field(max_length=63, description="Name of the optimization that the revision counts in."),
    ]
    revision: Annotated[int, Field(ge=1, description="Number of the plan, counted from 1.")]
    digest: Annotated[
        str, Field(description="SHA-256 of the decision and of the facts that it depends on.")
    ]
    request_digest: Annotated[str, Field(description="SHA-256 of the request.")]
    objects_digest: Annotated[
        str, Field(description="SHA-256 of the generated objects; equal plans have the same.")
    ]
    requested_by: Annotated[
        str | None,
        Field(default=None, description="The authenticated user; absent if nobody is checked."),
    ]
    objective: Annotated[float, Field(description="Sum of the scores, minus the costs of changes.")]
    bound: Annotated[
        float | None, Field(default=None, description="No plan was worth more than this.")
    ]
    gap: Annotated[
        float | None,
        Field(default=None, description="Optimality gap: (bound - objective) / objective."),
    ]
    scores: Annotated[
        RecordedScores | None,
        Field(default=None, description="The versions of the scores that the plan rested on."),
    ]
    changes: Annotated[
        RecordedChanges | None, Field(default=None, description="What the plan changed.")
    ]
    rollback: Annotated[
        RecordedRollback | None,
        Field(default=None, description="Present if the plan restored an earlier one."),
    ]
    content: Annotated[
        str | None,
        Field(
            default=None,
            description="Request, decision, generated objects and changes: JSON, gzip, base64."
            " Absent if it would be too large for the hub.",
        ),
    ]
    rollout: Annotated[
        str | None,
        Field(
            default=None,
            description="The steps of a Stepwise rollout: JSON, gzip, base64. Absent if the plan is"
            " written all at once.",
        ),
    ]
    record_digest: Annotated[
        str, Field(description="SHA-256 of all other fields; it tells an edit by hand.")
    ]


class RecordedWait(WireModel):
    """What a step of a rollout waits for."""

    reason: Annotated[
        str, Field(description="Why, in one word for programs, such as MinReadySeconds.")
    ]
    message: Annotated[str, Field(description="What is waited for, in words for people.")]
    since: Annotated[
        str | None,
        Field(
            default=None,
            description="Since when it is waited for.",
            json_schema_extra={"format": "date-time"},
        ),
    ]


class RecordedProgress(WireModel):
    """How far a Stepwise rollout is. Change it with `dsf rollout`, not by hand."""

    phase: Annotated[
        RolloutPhase,
        Field(
            description="Progressing: steps are left. Complete: the plan is reached. TurnedBack:"
            " the state before the plan is reached again. Cancelled: no further step is made."
        ),
    ] = "Progressing"
    source: Annotated[int, Field(ge=0, description="State that the step in progress leaves.")] = 0
    target: Annotated[
        int,
        Field(ge=0, description="State that is being made; equal to source: no step in progress."),
    ] = 0
    steps: Annotated[int, Field(ge=0, description="Number of steps.")] = 0
    turning_back: Annotated[
        bool, Field(description="Steps are undone, towards the state before the plan.")
    ] = False
    paused: Annotated[bool, Field(description="No step begins until it is resumed.")] = False
    overdue: Annotated[bool, Field(description="The progress deadline has passed.")] = False
    ready_since: Annotated[
        str | None,
        Field(
            default=None,
            description="Since when all that the step needs is there; minReadySeconds count from"
            " here.",
            json_schema_extra={"format": "date-time"},
        ),
    ]
    last_progress: Annotated[
        str | None,
        Field(
            default=None,
            description="When a step was last completed or the rollout resumed; the progress"
            " deadline counts from here.",
            json_schema_extra={"format": "date-time"},
        ),
    ]
    waiting_for: Annotated[
        list[RecordedWait],
        Field(
            default_factory=list,
            description="What the step in progress waits for; empty if for nothing.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ]
    signature: Annotated[
        str | None,
        Field(default=None, description="Proof that the optimizer wrote this progress."),
    ]


class PlacementPlanStatus(WireModel):
    """What became of the plan."""

    phase: Annotated[
        PlanPhase | None,
        Field(
            default=None,
            description="Applying: being written. Applied: written. Failed: some writes were"
            " refused or interrupted. Superseded: a later plan was applied, or the namespace was"
            " reset. RolledBack: a rollback replaced it.",
        ),
    ]
    rollout: Annotated[
        RecordedProgress | None,
        Field(default=None, description="Present if the plan is rolled out step by step."),
    ]
    signature: Annotated[
        str | None,
        Field(
            default=None,
            description="Proof that the optimizer wrote this record: HMAC-SHA256 of metadata.uid"
            " and spec. Without it nothing is rolled out or restored.",
        ),
    ]
    conditions: ConditionList | None = None
