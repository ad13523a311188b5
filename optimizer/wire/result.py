"""The results of the HTTP API and of the MCP tools."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from optimizer.domain.issue import Issue
from optimizer.domain.status import STATUS_MEANING, Status
from optimizer.wire.base import ResultPart
from optimizer.wire.explanation import Explanation

Action = Literal["create", "patch", "delete"]


class ScoreEntry(ResultPart):
    """One entry of an AddOnPlacementScore."""

    name: str
    value: int


class ScoreObject(ResultPart):
    """The scores of one managed cluster under one name."""

    cluster: str
    name: str
    description: Annotated[str, Field(description="What the scorer says the score tells.")] = ""
    score_dimension_format: Annotated[
        str, Field(description="How the scorer names its entries; empty where unknown.")
    ] = ""
    valid_until: datetime | None = None
    expired: bool = False
    scores: tuple[ScoreEntry, ...] = ()


class ScoreList(ResultPart):
    """The answer of GET /addonplacementscores."""

    items: tuple[ScoreObject, ...]


class Placed(ResultPart):
    """A workload's place."""

    workload: str
    cluster: str
    policy: str
    device: str
    score: float


class Unplaced(ResultPart):
    """A workload without all its places, and why."""

    workload: str
    reason: str
    message: str


class ObjectRef(ResultPart):
    """A Kubernetes object by name."""

    kind: str
    namespace: str
    name: str


class PlannedChange(ObjectRef):
    """A write that a plan implies."""

    action: Action


class FailedChange(PlannedChange):
    """A write that the API server refused."""

    message: str


class Applied(ResultPart):
    """The changes of a plan that were made, and those that failed."""

    digest: str
    applied: tuple[PlannedChange, ...]
    failed: tuple[FailedChange, ...] = ()


class ResetResult(ResultPart):
    """The answer of POST /reset."""

    deleted: tuple[ObjectRef, ...]
    failed: tuple[FailedChange, ...] = ()


class PriorityValue(ResultPart):
    """What the placements of one priority are worth."""

    priority: int
    value: float
    bound: Annotated[
        float, Field(description="The best placement, priority by priority, has at most this.")
    ]


class OptimizeResult(ResultPart):
    """The answer of POST /optimize: a plan, and whether it was applied."""

    status: Annotated[Status, Field(description=STATUS_MEANING)]
    objective_value: Annotated[
        float,
        Field(description="Sum of the scores of the places, minus what moves and changes cost."),
    ]
    output_yaml: Annotated[str, Field(description="The generated objects.")]
    digest: Annotated[str, Field(description="SHA-256 of the facts used and of the decision.")]
    bound: Annotated[float | None, Field(description="No placement is worth more than this.")]
    gap: Annotated[float | None, Field(description="(bound - objective_value) / objective_value.")]
    seconds: Annotated[float, Field(description="Time spent solving.")]
    solver: str
    priorities: Annotated[
        tuple[PriorityValue, ...], Field(description="Value by priority, the highest first.")
    ] = ()
    policies: Annotated[
        dict[str, str],
        Field(description="The policy enforced, by cluster; of several pools joined by commas."),
    ]
    placements: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    gaps: tuple[Issue, ...]
    changes: tuple[PlannedChange, ...]
    applied: Annotated[bool, Field(description="False for a dry run.")]
    explanation: Annotated[
        Explanation | None,
        Field(description="Only where asked for.", exclude_if=lambda value: value is None),
    ] = None
