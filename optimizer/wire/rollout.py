"""Rollouts on the wire: the steps of a plan, how far they are, and what they wait for."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.explanation import EnforcedPolicy, GpusToDrain
from optimizer.wire.result import ObjectRef

RolloutPhase = Literal["Progressing", "Complete", "TurnedBack", "Cancelled"]


class ReplicaRef(ResultPart):
    """A replica of a workload: the workload on one cluster."""

    workload: Name
    cluster: Name


class StepActions(ResultPart):
    """What one step of a rollout changes; its writes may happen in any order."""

    enforce: tuple[EnforcedPolicy, ...] = ()
    release: tuple[EnforcedPolicy, ...] = ()
    start: tuple[ReplicaRef, ...] = ()
    stop: tuple[ReplicaRef, ...] = ()
    keep: Annotated[
        tuple[ReplicaRef, ...],
        Field(description="Replicas that run on without a claim while their policy is replaced."),
    ] = ()
    gpus: Annotated[
        tuple[GpusToDrain, ...], Field(description="GPUs that must be idle before this step.")
    ] = ()
    uncovered: Annotated[
        tuple[Name, ...],
        Field(description="Workloads with fewer replicas in this step than at start and goal."),
    ] = ()


class RecordedStep(ResultPart):
    """A step as the record has it: its actions, and what it writes and deletes going forward."""

    actions: StepActions
    write: tuple[dict[str, Any], ...] = ()
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
    objects: tuple[dict[str, Any], ...]
    steps: tuple[RecordedStep, ...]


class RolloutWait(ResultPart):
    """What a step waits for, with the reason that OCM gives, and since when it has that reason."""

    reason: Name
    message: Sentence
    since: datetime | None = None
