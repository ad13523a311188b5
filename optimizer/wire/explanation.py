"""The explanation of a plan, as responses carry it."""

from typing import Annotated

from pydantic import Field

from optimizer.wire.base import ResultPart


class ObjectiveLoss(ResultPart):
    """How much less the objective is worth; negative: more."""

    total: float
    by_priority: Annotated[
        dict[int, float],
        Field(description="By priority, highest first; empty if there is only one."),
    ]


class RunnerUp(ResultPart):
    """The best other resource of a workload by score; rules may forbid it."""

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
    """An assignment, and what the objective loses without it."""

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
        Field(description="Loss of the best solution without this place; null: not computed."),
    ]
    at_most: Annotated[
        ObjectiveLoss | None,
        Field(
            description="Upper bound of the margin: the loss of a known solution without the place;"
            " null: no such solution is known."
        ),
    ] = None
    instead: Annotated[
        tuple[AssignmentRef, ...], Field(description="Places of the workload in that solution.")
    ] = ()


class ConflictingLimit(ResultPart):
    """A limit that keeps a workload out, together with the others of the list."""

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
        bool, Field(description="The changed problem was solved again, and places the workload.")
    ]
    places: Annotated[
        tuple[AssignmentRef, ...], Field(description="Places of the workload in that solution.")
    ]
    losing: Annotated[
        tuple[str, ...],
        Field(description="Workloads with fewer places in that solution than in the plan."),
    ]


class UnplacedReason(ResultPart):
    """Why a workload has no place, or fewer than it asks for."""

    workload: str
    message: str
    limits: Annotated[
        tuple[ConflictingLimit, ...],
        Field(description="An infeasible subsystem: no decision keeps all of these limits."),
    ] = ()
    irreducible: Annotated[
        bool, Field(description="True: it was shown that without any one of them there is room.")
    ] = False
    lost: Annotated[
        ObjectiveLoss | None,
        Field(description="Loss of the objective if it is placed; only if there is room."),
    ] = None
    remedy: Repair | None = None


class BindingLimit(ResultPart):
    """A limit without slack."""

    cluster: Annotated[str, Field(description="Empty if the limit holds for several clusters.")]
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
    """The loss of the objective if a place or a policy is forced."""

    asked: str
    possible: Annotated[bool | None, Field(description="null: not computed.")]
    message: str
    lost: ObjectiveLoss | None = None
    places: tuple[AssignmentRef, ...] = ()


class ParetoPoint(ResultPart):
    """A solution: no other is better in one score without being worse in another."""

    values: Annotated[dict[str, float], Field(description="Sum over all places, by score.")]
    policies: tuple[EnforcedPolicy, ...]
    places: tuple[AssignmentRef, ...]


class ParetoSet(ResultPart):
    """The points that were found, the best in the first score first."""

    points: tuple[ParetoPoint, ...]
    complete: Annotated[bool, Field(description="True: it was proven that there are no others.")]
    message: str


class GpusToDrain(ResultPart):
    """GPUs that get another layout, and so must be idle when a policy is replaced."""

    cluster: str
    policy: Annotated[str, Field(description="The policy that is replaced.")]
    gpus: Annotated[
        tuple[str, ...] | None,
        Field(description="node/index, or index; null: not known, so all GPUs that it divides."),
    ] = None


class TransitionStep(ResultPart):
    """Changes that may be made in any order; the next step waits until they have settled."""

    draining: Annotated[
        tuple[GpusToDrain, ...], Field(description="GPUs that must be idle before this step.")
    ] = ()
    enforce: tuple[EnforcedPolicy, ...] = ()
    release: tuple[EnforcedPolicy, ...] = ()
    start: tuple[AssignmentRef, ...] = ()
    stop: tuple[AssignmentRef, ...] = ()
    uncovered: Annotated[
        tuple[str, ...],
        Field(description="Workloads that lose a replica in this step for a while."),
    ] = ()
    detours: Annotated[
        tuple[AssignmentRef, ...],
        Field(description="Places that are taken only until there is room elsewhere."),
    ] = ()


class TransitionPlan(ResultPart):
    """The steps from what runs now to the plan; after each, all rules but `replicas` hold."""

    steps: tuple[TransitionStep, ...]
    uncovered: Annotated[
        tuple[str, ...], Field(description="Workloads that lose a replica for a while.")
    ]
    returning: Annotated[
        tuple[AssignmentRef, ...],
        Field(description="Places that are left to make room, and taken again later."),
    ] = ()
    least: Annotated[
        bool,
        Field(
            description="True: it was proven that no order of single changes stops fewer replicas."
        ),
    ]
    message: str


class Explanation(ResultPart):
    """The explanation of a plan; `not_computed` names the parts that are missing."""

    places: tuple[AssignmentReason, ...] = ()
    unplaced: tuple[UnplacedReason, ...] = ()
    binding: tuple[BindingLimit, ...] = ()
    why_not: tuple[WhyNotAnswer, ...] = ()
    pareto: ParetoSet | None = None
    transition: TransitionPlan | None = None
    not_computed: Annotated[
        tuple[str, ...], Field(description="Parts that the time or the size did not allow.")
    ] = ()
    solves: Annotated[int, Field(description="Number of problems solved.")] = 0
