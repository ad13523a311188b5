"""The results of the HTTP API and of the MCP tools."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from dsf.api.crd.score_meaning import Direction
from optimizer.domain.issue import Issue
from optimizer.domain.solution import STATUS_MEANING, Status
from optimizer.wire.base import Name, ResultPart, Sentence, Text
from optimizer.wire.explanation import Explanation, Placed
from optimizer.wire.rollout import StepActions, UncoveredOthers

Action = Literal["create", "patch", "delete"]

MoveAction = Literal["starts", "moves", "stays", "shrinks", "stops", "waits"]


class ScoreEntry(ResultPart):
    """One entry of an AddOnPlacementScore."""

    name: Name
    value: int


class ScoreObject(ResultPart):
    """The scores of one managed cluster under one name."""

    cluster: Name
    name: Name
    description: Text = Field("", description="Description of the DynamicScorer; may be empty.")
    score_dimension_format: Text = Field(
        "", description="Format of the entries' names; empty if not known."
    )
    display_name: Text = ""
    unit: Text = ""
    direction: Direction | None = None
    written: datetime | None = Field(
        None, description="When it was published last; null: not kept by the hub."
    )
    valid_until: datetime | None = None
    expired: bool = False
    trust: float | None = Field(
        None, description="How far forecasts beat the last value, from 0 to 1; null: unknown."
    )
    scores: tuple[ScoreEntry, ...] = ()


class ScoreList(ResultPart):
    """The response of GET /addonplacementscores."""

    items: tuple[ScoreObject, ...]


class Unplaced(ResultPart):
    """A workload that runs on fewer clusters than it asks for, and the reason."""

    workload: Name
    reason: Sentence
    message: Sentence


class Removal(ResultPart):
    """A placed workload whose Placement a plan deletes, and the clusters that it leaves."""

    workload: Name
    clusters: tuple[Name, ...]
    message: Sentence


class WorkloadPlace(ResultPart):
    """A device of a cluster on which a workload runs, and its raw scores there by score name."""

    cluster: Name
    device: Name
    scores: dict[Name, float]


class WorkloadMove(ResultPart):
    """What a plan does to one workload."""

    workload: Name
    action: MoveAction = Field(
        description="shrinks: it loses places. waits: it runs nowhere, now and in the plan."
    )
    before: tuple[WorkloadPlace, ...]
    after: tuple[WorkloadPlace, ...]
    gain: dict[Name, float] = Field(description="Sum after minus sum before, by score.")
    uncovered: bool = Field(
        False,
        description="It has fewer replicas meanwhile. All at once: it runs now, and a cluster"
        " where it will run changes its policies, which must then be compliant for the stable"
        " window. Stepwise: as the steps say.",
    )
    why: Name = Field("", description="Why it has fewer places than it asks for.")


class EnforcementChange(ResultPart):
    """A cluster whose enforced policies change; GPUs that they divide are divided anew."""

    cluster: Name
    before: tuple[Name, ...]
    after: tuple[Name, ...]


GpuSource = Literal["Inventory", "Policy", "Hardware"]


class GpuSlice(ResultPart):
    """A device on a GPU: a MIG instance, or the whole GPU."""

    device: Name
    start: int = Field(description="Its first memory slice.")
    memory: int = Field(description="Memory slices.")
    compute: int = Field(description="Compute slices.")


class GpuLayout(ResultPart):
    """How a GPU is divided: one legal way of those with the same instances.

    Without slices it has no instance, or it is not known how it is divided. A GPU whose model has
    no MIG that is known has one slice of each.
    """

    slices: tuple[GpuSlice, ...] = Field(description="By start.")
    memory: int = Field(description="Memory slices of the GPU.")
    compute: int = Field(description="Compute slices of the GPU.")


class ClusterGpus(ResultPart):
    """Equal GPUs of a cluster."""

    model: Name = Field(description="Empty: not known.")
    layout: int = Field(description="Position in `layouts`.")
    count: int
    known: GpuSource = Field(
        description="Inventory: nodes advertise the devices. Policy: a policy in force"
        " supplies them. Hardware: labels and claims of the cluster tell of the GPUs."
    )


class OccupiedDevice(ResultPart):
    """What a workload reserves of a device on a cluster."""

    device: Name = Field(description="Such as 3g.40gb, or all; empty: not known which.")
    workload: Name = Field(description="Empty: Pods that are no workload's here.")
    amount: float = Field(description="Instances, or whole GPUs.")


class GpusOnCluster(ResultPart):
    """The GPUs of a cluster that a plan changes, and what its workloads reserve there."""

    cluster: Name
    before: tuple[ClusterGpus, ...] = Field(description="As they are now.")
    gpus: tuple[ClusterGpus, ...] = Field(description="As the plan divides them.")
    occupied: tuple[OccupiedDevice, ...] = Field(description="With the plan.")


class WorkloadClusters(ResultPart):
    """A workload, and the clusters on which it has a ManifestWork."""

    workload: Name
    clusters: tuple[Name, ...]


class ObjectRef(ResultPart):
    """A Kubernetes object by name."""

    kind: Name
    namespace: Name
    name: Name


class PlannedChange(ObjectRef):
    """A write that a plan implies."""

    action: Action


class FailedChange(PlannedChange):
    """A write that the API server refused."""

    message: Sentence
    missing_right: Sentence = ""
    """The right that whoever wrote lacks on the hub; empty if no right would help."""


class Applied(ResultPart):
    """The changes of a plan that were made, and those that failed.

    `record`: the PlacementPlan that records it; empty if none does, and `issues` say why. `steps`:
    those of its rollout, which makes the changes one by one from now on.
    """

    digest: str
    applied: tuple[PlannedChange, ...]
    steps: int = 0
    failed: tuple[FailedChange, ...] = ()
    record: Name = ""
    issues: tuple[Issue, ...] = ()


class ResetResult(ResultPart):
    """The response of POST /reset: the deleted objects, and those that could not be deleted."""

    deleted: tuple[ObjectRef, ...]
    failed: tuple[FailedChange, ...] = ()
    running: tuple[WorkloadClusters, ...] = Field(
        (),
        description="Workloads that go on running: OCM leaves the ManifestWorks of a Placement"
        " that is gone; seldom it sees the decisions go first, and stops one. A reset with"
        " stopWorkloads stops them all.",
    )
    stopping: tuple[WorkloadClusters, ...] = Field(
        (),
        description="Only with stopWorkloads: workloads that OCM now stops. Their Placements"
        " stay, and select no cluster.",
    )
    uncovers_others: tuple[UncoveredOthers, ...] = Field(
        (), description="Workloads of others that are uncovered, because policies are gone."
    )
    gaps: tuple[Issue, ...] = Field((), description="What could not be read.")


class PriorityValue(ResultPart):
    """The value of all assignments of one priority."""

    priority: int
    value: float
    bound: float = Field(description="No plan has a higher value, given the higher priorities.")


class OptimizeResult(ResultPart):
    """The response of POST /optimize: a plan, and whether it was applied."""

    status: Status = Field(description=STATUS_MEANING)
    objective_value: float = Field(
        description="Sum of the weighted scores of all placements, minus the costs of changes."
    )
    output_yaml: str = Field(description="The generated objects as YAML.")
    digest: str = Field(description="SHA-256 of the decision and of the facts that it depends on.")
    bound: float | None = Field(description="No plan is worth more than this; null: no bound.")
    gap: float | None = Field(
        description="Optimality gap: (bound - objective_value) / objective_value."
    )
    seconds: float = Field(description="Time that the solve took.")
    solver: str
    priorities: tuple[PriorityValue, ...] = Field(
        (), description="Value by priority, the highest priority first."
    )
    policies: dict[Name, Name] = Field(
        description="Enforced policy by cluster; those of several pools are joined by commas."
    )
    placements: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    removals: tuple[Removal, ...] = Field((), description="Placed workloads that the plan removes.")
    moves: tuple[WorkloadMove, ...] = Field((), description="Each workload, before and after.")
    enforcement_changes: tuple[EnforcementChange, ...] = Field(
        (), description="Clusters whose policies change."
    )
    layouts: tuple[GpuLayout, ...] = Field((), description="How GPUs of `gpus_after` are divided.")
    gpus_after: tuple[GpusOnCluster, ...] = Field(
        (), description="The first 1000 clusters with GPUs whose policies or workloads change."
    )
    uncovers_others: tuple[UncoveredOthers, ...] = Field(
        (), description="Workloads of others that the plan uncovers; empty: none."
    )
    gaps: tuple[Issue, ...]
    changes: tuple[PlannedChange, ...]
    applied: bool = Field(description="False for a dry run.")
    record: Name = Field("", description="PlacementPlan that records the plan; empty if none does.")
    rollout_steps: tuple[StepActions, ...] = Field(
        (),
        description="Only with rollout Stepwise: the steps, which a rollout makes one by one.",
        exclude_if=lambda steps: not steps,
    )
    explanation: Explanation | None = Field(
        None,
        description="Only if the request asks for one.",
        exclude_if=lambda value: value is None,
    )
