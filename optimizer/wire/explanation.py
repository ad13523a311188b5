"""The explanation of a plan, as responses carry it."""

from typing import Annotated

from pydantic import Field

from optimizer.wire.base import ResultPart


class ObjectiveLoss(ResultPart):
    """How much less the objective is worth; negative: more."""

    total: float
    by_priority: Annotated[
        dict[int, float], Field(description="By priority, highest first, where there are several.")
    ]


class RunnerUp(ResultPart):
    """Where else a workload could run, if no rule forbade it."""

    cluster: str
    device: str
    score: float


class AssignmentRef(ResultPart):
    """A workload on a device of a cluster."""

    workload: str
    cluster: str
    device: str


class EnforcedPolicy(ResultPart):
    """A policy that a cluster enforces."""

    cluster: str
    policy: str


class AssignmentReason(ResultPart):
    """Where a workload runs, and what the objective loses without that."""

    workload: str
    cluster: str
    policy: str
    device: str
    score: float
    runner_up: Annotated[
        RunnerUp | None,
        Field(description="Best other place by score alone; null: no other is usable."),
    ]
    margin: Annotated[
        ObjectiveLoss | None,
        Field(description="Lost in the best solution without this place; null: not computed."),
    ]
    at_most: Annotated[
        ObjectiveLoss | None,
        Field(
            description="The margin is no more than this, which a solution without the place"
            " loses; null: none is known."
        ),
    ] = None
    instead: Annotated[
        tuple[AssignmentRef, ...], Field(description="The workload's places in that solution.")
    ] = ()


class ConflictingLimit(ResultPart):
    """A limit that, together with the others named, keeps a workload out."""

    rule: str
    message: str


class RepairChange(ResultPart):
    """One change of a repair, in words."""

    message: str
    size: Annotated[
        float,
        Field(
            description="Share of what all could use, or of the limit; 1: a constraint dropped; 2:"
            " a workload stopped; for a higher value, how much higher."
        ),
    ]


class Repair(ResultPart):
    """The cheapest repair found: the fewest changes, then the smallest total size."""

    changes: tuple[RepairChange, ...]
    verified: Annotated[
        bool, Field(description="Solving again with these changes places the workload.")
    ]
    places: Annotated[tuple[AssignmentRef, ...], Field(description="Where, in that solution.")]
    losing: Annotated[
        tuple[str, ...], Field(description="Workloads with fewer places in that solution.")
    ]


class UnplacedReason(ResultPart):
    """Why a workload has no place, or fewer than it asks for."""

    workload: str
    message: str
    limits: Annotated[
        tuple[ConflictingLimit, ...],
        Field(description="Together they leave no room while everything placed keeps running."),
    ] = ()
    irreducible: Annotated[
        bool, Field(description="True: shown by solving that without any one of them there is room")
    ] = False
    lost: Annotated[
        ObjectiveLoss | None,
        Field(description="What placing it all the same would cost the objective."),
    ] = None
    remedy: Repair | None = None


class BindingLimit(ResultPart):
    """A limit that is used up."""

    cluster: Annotated[str, Field(description="Empty: the limit holds for several clusters.")]
    limit: str
    used: float
    price: Annotated[
        dict[int, float] | None,
        Field(
            description="Dual of one more unit, by priority, in the linear relaxation with the"
            " chosen policies; null: not computed."
        ),
    ]


class WhyNotAnswer(ResultPart):
    """What it costs the objective to force a place or a policy."""

    asked: str
    possible: Annotated[bool | None, Field(description="null: not computed.")]
    message: str
    lost: ObjectiveLoss | None = None
    places: tuple[AssignmentRef, ...] = ()


class ParetoPoint(ResultPart):
    """A solution that nothing betters in one score without being worse in another."""

    values: Annotated[dict[str, float], Field(description="Sum over all places, by score.")]
    policies: tuple[EnforcedPolicy, ...]
    places: tuple[AssignmentRef, ...]


class ParetoSet(ResultPart):
    """The points found, the best in the first score first."""

    points: tuple[ParetoPoint, ...]
    complete: Annotated[bool, Field(description="True: there are no others.")]
    message: str


class GpusToDrain(ResultPart):
    """GPUs that must be idle when a policy is replaced: they get another layout."""

    cluster: str
    policy: Annotated[str, Field(description="The policy that is replaced.")]
    gpus: Annotated[
        tuple[str, ...] | None,
        Field(description="node/index, or index; null: not known, so all that it divides."),
    ] = None


class TransitionStep(ResultPart):
    """Changes that may be made at once; the next step waits until they have settled."""

    draining: Annotated[
        tuple[GpusToDrain, ...], Field(description="What must be idle before this step.")
    ] = ()
    enforce: tuple[EnforcedPolicy, ...] = ()
    release: tuple[EnforcedPolicy, ...] = ()
    start: tuple[AssignmentRef, ...] = ()
    stop: tuple[AssignmentRef, ...] = ()
    uncovered: Annotated[
        tuple[str, ...], Field(description="Workloads that lose a replica here for a while.")
    ] = ()
    detours: Annotated[
        tuple[AssignmentRef, ...], Field(description="Places taken only until room has been made.")
    ] = ()


class TransitionPlan(ResultPart):
    """From what runs now to the solution; after every step all rules but `replicas` hold."""

    steps: tuple[TransitionStep, ...]
    uncovered: Annotated[
        tuple[str, ...], Field(description="Workloads that lose a replica for a while.")
    ]
    returning: Annotated[
        tuple[AssignmentRef, ...],
        Field(description="Places that are left to make room, and taken again."),
    ] = ()
    least: Annotated[
        bool, Field(description="True: no order of single changes takes away fewer replicas.")
    ]
    message: str


class Explanation(ResultPart):
    """Everything computed about a plan; what was not is named."""

    places: tuple[AssignmentReason, ...] = ()
    unplaced: tuple[UnplacedReason, ...] = ()
    binding: tuple[BindingLimit, ...] = ()
    why_not: tuple[WhyNotAnswer, ...] = ()
    pareto: ParetoSet | None = None
    transition: TransitionPlan | None = None
    not_computed: Annotated[
        tuple[str, ...], Field(description="What the time or the size did not allow.")
    ] = ()
    solves: Annotated[int, Field(description="Problems solved for it.")] = 0
