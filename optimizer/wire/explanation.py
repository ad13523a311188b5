"""The questions that a request asks about its plan, and the explanation that responses carry."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from optimizer.wire.base import Name, ObjectName, RequestPart, ResultPart, Sentence


class ObjectiveLoss(ResultPart):
    """By how much the objective value is lower; negative: higher."""

    total: float
    by_priority: dict[int, float] = Field(
        description="Loss by priority, the highest first; empty if there is one priority."
    )


class RunnerUp(ResultPart):
    """The best other assignment of a workload by score alone; rules may forbid it."""

    cluster: Name
    device: Name
    score: float
    taken_by: tuple[Name, ...] = Field(
        (), description="At most 3 workloads that the plan has there, if that leaves no room."
    )


class AssignmentRef(ResultPart):
    """A workload on a device of a cluster."""

    workload: Name
    cluster: Name
    device: Name


class EnforcedPolicy(ResultPart):
    """A policy that a cluster enforces."""

    cluster: Name
    policy: Name


class Placed(ResultPart):
    """An assignment: a workload on a device of a cluster, its policy and its score."""

    workload: Name
    cluster: Name
    policy: Name
    device: Name
    score: float


class AssignmentReason(Placed):
    """An assignment, and what the objective loses without it."""

    entries: dict[Name, Name] = Field(
        default_factory=dict,
        description="By score, the name of the entry that counted; of several, how it was chosen."
        " A score without an entry is missing.",
    )
    runner_up: RunnerUp | None = Field(description="null: the workload can use no other device.")
    margin: ObjectiveLoss | None = Field(
        description="Loss of the best solution without this assignment; null: not computed."
    )
    at_most: ObjectiveLoss | None = Field(
        None,
        description="Upper bound of the margin: the loss of a known solution without this"
        " assignment; null: no such solution is known.",
    )
    instead: tuple[AssignmentRef, ...] = Field(
        (), description="Places of the workload in that solution."
    )


class ConflictingLimit(ResultPart):
    """A limit which, together with the others of the list, leaves no room for a workload."""

    rule: Sentence
    message: Sentence


class RepairChange(ResultPart):
    """One change of a repair, in words."""

    message: Sentence
    size: float = Field(
        description="Relative size: an amount as a share of what all workloads could use, or of"
        " the limit; 0.01 for a GPU to free, 1 for a dropped constraint, 2 for a stopped"
        " workload; of a raised score the raise."
    )


class Repair(ResultPart):
    """The cheapest repair that was found: the fewest changes, then the smallest total size."""

    changes: tuple[RepairChange, ...]
    verified: bool = Field(
        description="True: the changed problem was solved again, and its best solution has it."
    )
    places: tuple[AssignmentRef, ...] = Field(
        description="Places of the workload in that solution."
    )
    losing: tuple[Name, ...] = Field(
        description="Workloads that run on fewer clusters in that solution than in the plan."
    )


class UnplacedReason(ResultPart):
    """Why a workload runs on fewer clusters than it asks for."""

    workload: Name
    message: Sentence
    limits: tuple[ConflictingLimit, ...] = Field(
        (), description="An infeasible subsystem: no decision keeps all of these limits."
    )
    irreducible: bool = Field(
        False, description="True: it was shown that without any one of them there is room."
    )
    lost: ObjectiveLoss | None = Field(
        None, description="Loss of the best solution that places it; only if there is room."
    )
    remedy: Repair | None = None


class BindingLimit(ResultPart):
    """A limit that the plan uses up."""

    cluster: Name = Field(description="Empty if the limit holds for several clusters.")
    limit: Sentence
    used: float
    price: dict[int, float] | None = Field(
        description="Dual of one more unit, by priority, in the linear relaxation with the"
        " chosen policies; null: not computed."
    )


class WhyNotAnswer(ResultPart):
    """What it costs to force an assignment or a policy."""

    asked: Sentence
    possible: bool | None = Field(description="null: not computed.")
    message: Sentence
    lost: ObjectiveLoss | None = None
    places: tuple[AssignmentRef, ...] = ()


class ParetoPoint(ResultPart):
    """A solution that no other one betters in a score without being worse in another."""

    values: dict[Name, float] = Field(description="Sum over all assignments, by score.")
    policies: tuple[EnforcedPolicy, ...]
    places: tuple[AssignmentRef, ...]


class ParetoSet(ResultPart):
    """The points that were found, the best in the first score first."""

    points: tuple[ParetoPoint, ...]
    complete: bool = Field(description="True: it was proven that no other points exist.")
    message: Sentence


class GpusToDrain(ResultPart):
    """GPUs that get another layout, so that they must be idle when their policy is replaced."""

    cluster: Name
    policy: Name = Field(description="The policy that is replaced.")
    gpus: tuple[Name, ...] | None = Field(
        None, description="node/index, or index; null: not known, so drain all that it divides."
    )


class TransitionStep(ResultPart):
    """Changes that may be made in any order; the next step waits until they have settled."""

    draining: tuple[GpusToDrain, ...] = Field(
        (), description="GPUs that must be idle before this step."
    )
    enforce: tuple[EnforcedPolicy, ...] = ()
    release: tuple[EnforcedPolicy, ...] = ()
    start: tuple[AssignmentRef, ...] = ()
    stop: tuple[AssignmentRef, ...] = ()
    uncovered: tuple[Name, ...] = Field(
        (), description="Workloads that lose a replica until a later step starts it again."
    )
    detours: tuple[AssignmentRef, ...] = Field(
        (), description="Assignments that last only until there is room elsewhere."
    )


class TransitionPlan(ResultPart):
    """The steps from what runs now to the plan; after each, all rules but `replicas` hold."""

    steps: tuple[TransitionStep, ...]
    uncovered: tuple[Name, ...] = Field(description="Workloads that lose a replica for a while.")
    returning: tuple[AssignmentRef, ...] = Field(
        (), description="Assignments that stop to make room, and start again later."
    )
    least: bool = Field(
        description="True: it was proven that no order of single changes stops fewer replicas."
    )
    message: Sentence


class Explanation(ResultPart):
    """The explanation of a plan."""

    places: tuple[AssignmentReason, ...] = ()
    unplaced: tuple[UnplacedReason, ...] = ()
    binding: tuple[BindingLimit, ...] = ()
    why_not: tuple[WhyNotAnswer, ...] = ()
    pareto: ParetoSet | None = None
    transition: TransitionPlan | None = None
    not_computed: tuple[Sentence, ...] = Field(
        (), description="Parts that are missing: the time limit, the size, or a failure."
    )
    solves: int = Field(0, description="Number of problems solved.")


class WhyNotQuestion(RequestPart):
    """What would it cost to force this assignment, or this policy?"""

    cluster: ObjectName
    workload: ObjectName | None = Field(
        None, description="The workload to force onto the cluster.", examples=["app01"]
    )
    device: Annotated[
        Name,
        Field(
            max_length=253, description="The device to force it onto; empty: any of the cluster."
        ),
    ] = ""
    policy: ObjectName | None = Field(None, description="The policy to force.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.workload is None) == (self.policy is None):
            raise ValueError("name one of workload and policy")
        if self.device and self.policy:
            raise ValueError("device: only a workload has one")
        return self
