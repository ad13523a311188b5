"""PlacementOptimization: a request of POST /optimize that is kept, and what became of it.

The name of the object is that of the optimization, its namespace that of the request.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import FailFast, Field, ValidationError, model_validator

from dsf.api.crd.definitions import CustomResourceDefinition, column, custom_resource_definition
from dsf.api.crd.structural_schema import AtomicList, ConditionList, Schema, Timestamp, rule, rules
from dsf.api.wire_model import WireModel
from dsf.kube.port import Object
from optimizer.wire.base import Name, ResultPart, Sentence, Text
from optimizer.wire.keeping import Keeping
from optimizer.wire.object_specs import Selector
from optimizer.wire.request import (
    MAX_MISSING_SCORE,
    OptimizeRequest,
    RequestedCluster,
    RequestedWorkload,
)
from optimizer.wire.request_problem import (
    RequestProblem,
    field_problems,
    invalid_request,
    known_fields,
    validated_request,
)

Mode = Literal["Plan", "Approve", "Apply"]

MAX_HISTORY = 10
"""Entries of a status' history."""

MAX_CHANGES = 100
"""Changes that are counted one by one; more of them in a day are counted together."""

MAX_PENDING_PLACES = 500
"""Places whose Pods were left pending that a status lists."""

_OF_METADATA = ("namespace", "optimization")
_OF_ONE_ANSWER = ("dryRun", "explain", "explainWorkloads", "whyNot", "pareto")
"""Fields of POST /optimize that say something of its answer, and nothing of what is kept."""


class PlacementOptimizationSpec(Keeping, OptimizeRequest):
    """What is to be kept: the fields of POST /optimize, and when a change is worth its moves."""

    clusters: Annotated[tuple[RequestedCluster, ...], FailFast()] = Field(
        (),
        max_length=20_000,
        description="The managed clusters. Empty: all that the namespace is bound to, with the"
        " policies that they may enforce.",
    )
    target_workloads: Annotated[tuple[RequestedWorkload, ...], FailFast()] = Field(
        (),
        max_length=100_000,
        description="The ManifestWorkReplicaSets to place. Empty: all with the labels of one.",
    )
    cluster_selector: Selector = Field(
        "", description="Label selector: only clusters that match it."
    )
    workload_selector: Selector = Field(
        "", description="Label selector: only workloads that match it."
    )
    mode: Mode = Field(
        "Plan",
        description="Plan: only say in the status what would be better. Approve: apply a plan whose"
        " digest was approved. Apply: apply plans.",
    )
    suspend: bool = Field(False, description="Neither plan nor apply.")
    deletion_policy: Literal["Retain", "Reset"] = Field(
        "Retain",
        description="What becomes of what was generated when this is deleted. Retain: it stays."
        " Reset: it is deleted first, as by POST /reset; the workloads go on running.",
    )

    @model_validator(mode="before")
    @classmethod
    def _kept_only(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for field in filter(value.__contains__, _OF_ONE_ANSWER):
                raise ValueError(f"{field}: say it to POST /optimize; here is no answer to change")
        return value

    def request(self, **fields: Any) -> OptimizeRequest | RequestProblem:
        """Return the request with these fields, which have the form of the wire."""
        own = set(PlacementOptimizationSpec.model_fields) - set(OptimizeRequest.model_fields)
        body = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=own)
        return validated_request({**body, **fields})


class PlannedChanges(WireModel):
    """What the last plan would change."""

    create: int = Field(0, description="Objects that it creates.")
    patch: int = Field(0, description="Objects that it changes.")
    delete: int = Field(0, description="Objects that it deletes.")


class LastPlan(WireModel):
    """The last plan that was made."""

    digest: str = Field(
        description="SHA-256 of the objects that it generates. Approve this one; the PlacementPlan"
        " has it as spec.objectsDigest."
    )
    time: Timestamp = Field(description="When it was made.")
    objective: float = Field(description="Sum of the scores, minus the costs of changes.")
    bound: float | None = Field(None, description="No plan was worth more than this.")
    gap: float | None = Field(None, description="Optimality gap: (bound - objective) / objective.")
    workloads: int = Field(description="Workloads that it is about.")
    unplaced: int = Field(0, description="Workloads that have fewer places than they ask for.")
    moves: int = Field(0, description="Workloads that it moves, starts or stops.")
    changes: PlannedChanges | None = Field(None, description="What it changes.")
    record: str | None = Field(None, description="The PlacementPlan, once it is applied.")


class OptimizationEvent(WireModel):
    """A plan that was applied, or why none was."""

    time: Timestamp = Field(description="When it was.")
    reason: str = Field(description="What it was, in one word for programs, such as Applied.")
    message: str = Field(description="What it was, in words for people.")
    digest: str | None = Field(None, description="The digest of the plan.")


class RecentChange(WireModel):
    """The moves of a plan, which budgets count; written before they are made."""

    time: Timestamp = Field(description="When it was applied.")
    digest: str = Field(description="The digest of the plan.")
    better_score: int = Field(0, description="Replicas that left for a better score.")
    cluster_lost: int = Field(0, description="Replicas whose cluster was lost.")
    not_eligible: int = Field(0, description="Replicas that may not stay where they ran.")


class PendingPlace(WireModel):
    """A place that a plan left because the scheduler found no node for the Pods there."""

    workload: str = Field(description="The ManifestWorkReplicaSet.")
    cluster: str = Field(description="The managed cluster that it left.")
    until: Timestamp = Field(description="Until then any other place is worth more.")


class PlacementOptimizationStatus(WireModel):
    """What became of what is to be kept."""

    observed_generation: int | None = Field(
        None, ge=0, description="metadata.generation that this status is about."
    )
    conditions: ConditionList | None = None
    plan: LastPlan | None = Field(None, description="The last plan that was made.")
    gain: float | None = Field(
        None,
        description="What the best plan of averaged scores would be worth more than what is, also"
        " if no move of it gains enough; found to within 0.1% of the whole value. Absent while it"
        " is not kept.",
    )
    next_look: Timestamp | None = Field(
        None,
        description="When it plans next if nothing changes; scores are read all the time, and plan"
        " when they change. Absent: when something changes.",
    )
    moves_left: int | None = Field(
        None,
        description="Moves that the budgets leave now, or left at the last plan while it is not"
        " kept; absent without budgets.",
    )
    plan_requested: str | None = Field(
        None, description="The value of the annotation plan-requested-at that was answered last."
    )
    recent_changes: AtomicList[RecentChange] | None = Field(
        None, max_length=MAX_CHANGES, description="The changes of the last day, the newest first."
    )
    pending_places: AtomicList[PendingPlace] | None = Field(
        None,
        max_length=MAX_PENDING_PLACES,
        description="The places that were left because Pods stayed pending, the newest first.",
    )
    last_change: Timestamp | None = Field(None, description="When it last applied a plan.")
    history: AtomicList[OptimizationEvent] | None = Field(
        None,
        max_length=MAX_HISTORY,
        description=f"The last {MAX_HISTORY} things that it did, the newest first.",
    )


class KeptOptimization(ResultPart):
    """A PlacementOptimization, and what its status means."""

    namespace: Name
    name: Name
    mode: Name = Field(description="Plan, Approve or Apply.")
    fine: bool = Field(
        description="Nobody has to do anything: all is as planned, or will be, and every workload"
        " has its places."
    )
    wrong: Text = Field("", description="What is not fine, and why; empty: it is.")
    reason: Name = Field(description="Of the first condition that is not True, else of Applied.")
    message: Text = Field(description="What is wrong, or why what is on offer is not taken yet.")
    waiting: Name = Field(description="Digest of the plan that waits for an approval; or empty.")
    approved: bool = Field(description="That plan was approved, and is applied at the next look.")
    effect: Sentence = Field(description="What the last plan changes and gains; or empty.")
    move_rule: Sentence = Field(description="What a move for a better score has to gain.")
    status: PlacementOptimizationStatus = Field(description="As it is on the hub.")


class KeptList(ResultPart):
    """The PlacementOptimizations of a namespace."""

    namespace: Name
    items: tuple[KeptOptimization, ...]


_FIELDS = known_fields(PlacementOptimizationSpec)


def read_spec(obj: Object) -> PlacementOptimizationSpec | RequestProblem:
    """Return the spec of a PlacementOptimization, or the problem that names each wrong field."""
    metadata = obj["metadata"]
    named = {"namespace": metadata["namespace"], "optimization": metadata["name"]}
    try:
        return PlacementOptimizationSpec.model_validate({**(obj.get("spec") or {}), **named})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return invalid_request(field_problems(found, _FIELDS))


def placement_optimization() -> CustomResourceDefinition:
    """Return the CustomResourceDefinition, to apply."""
    definition = custom_resource_definition(
        kind="PlacementOptimization",
        plural="placementoptimizations",
        short_names=["popt"],
        description="PlacementOptimization keeps workloads placed where their scores are best.",
        spec=PlacementOptimizationSpec,
        status=PlacementOptimizationStatus,
        columns=[
            column("Mode", ".spec.mode"),
            *(
                column(aspect, f".status.conditions[?(@.type=='{aspect}')].status")
                for aspect in ("Ready", "Planned", "Applied", "Satisfied")
            ),
            column("Gain", ".status.gain", "number"),
            column("Moves left", ".status.movesLeft", "integer"),
            column("Last change", ".status.lastChange", "date"),
            column("Reason", ".status.conditions[?(@.type=='Applied')].reason", priority=1),
            column("Objective", ".status.plan.objective", "number", priority=1),
            column("Next look", ".status.nextLook", "string", priority=1),
            column("Digest", ".status.plan.digest", priority=1),
        ],
    )
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema |= rules(
        rule(
            "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
            "the name is that of the optimization: at most 63 letters, digits and -",
        )
    )
    _to_kept(schema["properties"]["spec"])
    return definition


def _to_kept(spec: Schema) -> None:
    """Make the schema of a request that of a spec."""
    fields = spec["properties"]
    for name in (*_OF_METADATA, *_OF_ONE_ANSWER):
        del fields[name]
    spec["required"] = [name for name in spec["required"] if name in fields]
    fields["missingScore"] |= rules(
        rule(
            "type(self) == string ? self == 'forbid' :"
            f" self >= -{MAX_MISSING_SCORE:.0f} && self <= {MAX_MISSING_SCORE:.0f}",
            f"must be 'forbid' or a whole number from -{MAX_MISSING_SCORE:.0f} to"
            f" {MAX_MISSING_SCORE:.0f}",
        )
    )
    _without_defaults(spec)
    fields["mode"]["default"] = "Plan"


def _without_defaults(schema: Schema) -> None:
    """Say the defaults in words: an object is stored as it was written."""
    default = schema.pop("default", None)
    if isinstance(default, str | int | float) and default not in ("", False):
        text = str(schema.get("description", "")).rstrip()
        schema["description"] = f"{text} Default: {default}."
    inner = (*schema.get("properties", {}).values(), schema.get("items"))
    for part in inner:
        if part:
            _without_defaults(part)
