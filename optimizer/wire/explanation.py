"""The explanation as values that are shown as they are."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Result(BaseModel):
    """A frozen part of an explanation."""

    model_config = ConfigDict(frozen=True)


class Lost(Result):
    """What the objective loses; negative: it gains."""

    total: float
    by_priority: Annotated[
        dict[int, float], Field(description="By priority, highest first, where there are several.")
    ]


class RunnerUp(Result):
    """Where else a workload could run, rules aside."""

    cluster: str
    device: str
    score: float


class Spot(Result):
    """A place of a workload."""

    workload: str
    cluster: str
    device: str


class Enforced(Result):
    """A cluster enforces a policy."""

    cluster: str
    policy: str


class PlaceReason(Result):
    """A place taken, and how much better it is than doing without it."""

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
        Lost | None,
        Field(description="Lost in the best solution without this place; null: not computed."),
    ]
    at_most: Annotated[
        Lost | None,
        Field(
            description="The margin is no more than this, which a solution without the place"
            " loses; null: none is known."
        ),
    ] = None
    instead: Annotated[
        tuple[Spot, ...], Field(description="The workload's places in that solution.")
    ] = ()


class LimitInTheWay(Result):
    """A limit that keeps a workload out together with the others named."""

    rule: str
    message: str


class Change(Result):
    """What could be changed so that a workload is placed."""

    message: str
    size: Annotated[
        float,
        Field(
            description="Share of what all could use, or of the limit; 1: a wish given up; 2: a"
            " workload stopped; for a higher value, how much higher."
        ),
    ]


class Remedy(Result):
    """The cheapest change found: fewest limits, then smallest total size."""

    changes: tuple[Change, ...]
    verified: Annotated[
        bool, Field(description="Solving again with these changes places the workload.")
    ]
    places: Annotated[tuple[Spot, ...], Field(description="Where, in that solution.")]
    losing: Annotated[
        tuple[str, ...], Field(description="Workloads with fewer places in that solution.")
    ]


class UnplacedReason(Result):
    """Why a workload has no place, or fewer than it wants."""

    workload: str
    message: str
    limits: Annotated[
        tuple[LimitInTheWay, ...],
        Field(description="Together they leave no room while everything placed keeps running."),
    ] = ()
    irreducible: Annotated[
        bool, Field(description="True: shown by solving that without any one of them there is room")
    ] = False
    lost: Annotated[
        Lost | None, Field(description="What placing it all the same would cost the objective.")
    ] = None
    remedy: Remedy | None = None


class BindingLimit(Result):
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


class WhyNot(Result):
    """What it would cost to force a place or a policy."""

    asked: str
    possible: Annotated[bool | None, Field(description="null: not computed.")]
    message: str
    lost: Lost | None = None
    places: tuple[Spot, ...] = ()


class ParetoPoint(Result):
    """A solution that no other betters in one score without being worse in another."""

    values: Annotated[dict[str, float], Field(description="Sum over all places, by score.")]
    policies: tuple[Enforced, ...]
    places: tuple[Spot, ...]


class ParetoSet(Result):
    """Points, best in the first score first."""

    points: tuple[ParetoPoint, ...]
    complete: Annotated[bool, Field(description="True: there are no others.")]
    message: str


class Draining(Result):
    """GPUs that must be idle when a policy is replaced: they get another layout."""

    cluster: str
    policy: Annotated[str, Field(description="The policy that is replaced.")]
    gpus: Annotated[
        tuple[str, ...] | None,
        Field(description="node/index, or index; null: not known, so all that it divides."),
    ] = None


class Step(Result):
    """Changes that may be made at once; the next step waits until they have settled."""

    draining: Annotated[
        tuple[Draining, ...], Field(description="What must be idle before this step.")
    ] = ()
    enforce: tuple[Enforced, ...] = ()
    release: tuple[Enforced, ...] = ()
    start: tuple[Spot, ...] = ()
    stop: tuple[Spot, ...] = ()
    uncovered: Annotated[
        tuple[str, ...], Field(description="Workloads that lose a replica here for a while.")
    ] = ()
    detours: Annotated[
        tuple[Spot, ...], Field(description="Places taken only until room has been made.")
    ] = ()


class TransitionPlan(Result):
    """From what runs now to the solution; after every step all rules but `replicas` hold."""

    steps: tuple[Step, ...]
    uncovered: Annotated[
        tuple[str, ...], Field(description="Workloads that lose a replica for a while.")
    ]
    returning: Annotated[
        tuple[Spot, ...],
        Field(description="Places that are left to make room, and taken again."),
    ] = ()
    least: Annotated[
        bool, Field(description="True: no order of single changes takes away fewer replicas.")
    ]
    message: str


class Explanation(Result):
    """Everything computed about a plan; what was not is named."""

    places: tuple[PlaceReason, ...] = ()
    unplaced: tuple[UnplacedReason, ...] = ()
    binding: tuple[BindingLimit, ...] = ()
    why_not: tuple[WhyNot, ...] = ()
    pareto: ParetoSet | None = None
    transition: TransitionPlan | None = None
    not_computed: Annotated[
        tuple[str, ...], Field(description="What the time or the size did not allow.")
    ] = ()
    solves: Annotated[int, Field(description="Problems solved for it.")] = 0
