"""When a PlacementOptimization looks, what its plans may move, and when nothing is moved.

The fields of windows and budgets are those of Karpenter's disruption budgets where these have
them, that of the stabilization is a HorizontalPodAutoscaler's.
"""

import math
import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, FailFast, Field, WithJsonSchema, model_validator

from dsf.api.crd.structural_schema import rule, rules
from optimizer.wire.base import RequestPart, Text, require_unique
from optimizer.wire.request import Preference
from optimizer.wire.time_windows import Cron, OptionalTimeWindow, Scheduled, Time, TimeWindow

MAX_SECONDS = 604_800
"""The longest window of hysteresis, a week."""

MoveReason = Literal["BetterScore", "ClusterLost", "NotEligible"]
"""Why a replica leaves its cluster: another place is worth more; the cluster is lost, removed or
tainted; or constraints do not allow the workload there any more, or its Pods lack a node there.
"""

ObjectTrigger = Literal[
    "ClusterAdded",
    "ClusterLost",
    "ClusterTainted",
    "WorkloadAdded",
    "WorkloadLost",
    "PolicyAdded",
    "PolicyLost",
]

ALL_OBJECTS: tuple[ObjectTrigger, ...] = get_args(ObjectTrigger)

_PERCENTAGE = r"^([0-9]|[1-9][0-9]|100)%$"
_MOST_MOVES = 1_000_000


def _moves(value: Any) -> Any:
    number = isinstance(value, int) and not isinstance(value, bool)
    share = isinstance(value, str) and re.fullmatch(_PERCENTAGE, value)
    if share or (number and 0 <= value <= _MOST_MOVES):
        return value
    raise ValueError(f"must be a number from 0 to {_MOST_MOVES} or a percentage such as 10%")


class Freeze(TimeWindow):
    """A window in which nothing moves for a better score.

    Workloads of a lost cluster, and those that run nowhere yet, are placed meanwhile.
    """


class MoveBudget(OptionalTimeWindow):
    """The most moves within a period. Of several budgets the one that leaves least counts."""

    moves: Annotated[
        int | str,
        BeforeValidator(_moves),
        WithJsonSchema(
            {
                "x-kubernetes-int-or-string": True,
                "pattern": _PERCENTAGE,
                **rules(
                    rule(
                        f"type(self) != int || (self >= 0 && self <= {_MOST_MOVES})",
                        f"must be a number from 0 to {_MOST_MOVES} or a percentage such as 10%",
                    )
                ),
            }
        ),
        Field(
            description="Replicas that may leave their cluster, or the percentage of those that"
            " run, rounded up. 0: none. What people move by POST /optimize or a rollback counts as"
            " BetterScore."
        ),
    ]
    per: Literal["Hour", "Day"] = Field(
        "Hour", description="The period before now in which moves are counted."
    )
    reasons: Annotated[tuple[MoveReason, ...], FailFast()] = Field(
        ("BetterScore",),
        min_length=1,
        max_length=3,
        description="Why replicas leave. BetterScore: another place is worth more. ClusterLost:"
        " their cluster is gone, lost or tainted. NotEligible: constraints do not allow them there"
        " any more, or Pods lack a node. Default: only BetterScore, because who has lost a cluster"
        " has no time.",
    )
    schedule: Cron | None = Field(
        None, description="The budget counts only in windows that start then."
    )

    def most(self, running: int) -> int:
        """Return how many moves the budget has if so many replicas run."""
        if isinstance(self.moves, int):
            return self.moves
        return math.ceil(int(self.moves.rstrip("%")) * running / 100)

    @property
    def period(self) -> timedelta:
        """The period in which moves are counted."""
        return timedelta(hours=1) if self.per == "Hour" else timedelta(days=1)

    def counts(self, now: datetime) -> bool:
        """Tell whether the budget counts at an aware time."""
        return self.schedule is None or self.window_end(now) is not None


class ScheduledObjective(TimeWindow):
    """Scores that count instead of `preference` and `objectives` while its window is open.

    What runs follows them a stabilization window later, once they have been averaged.
    """

    preference: Preference = Field(description="A score that is maximised, as in the request.")
    objectives: Annotated[tuple[Preference, ...], FailFast()] = Field(
        (), max_length=20, description="Further scores, as in the request."
    )

    @model_validator(mode="after")
    def _scores_once(self) -> Self:
        require_unique([score.key for score in (self.preference, *self.objectives)], "score")
        return self


class Triggers(Scheduled):
    """What makes it look at once. The annotation plan-requested-at always does."""

    score_change: float = Field(
        5.0,
        ge=0,
        le=200,
        description="A score that differs by so many points from the last plan's, both averaged"
        " over the stabilization window. 0: at every change.",
    )
    objects: Annotated[tuple[ObjectTrigger, ...], FailFast()] = Field(
        ALL_OBJECTS,
        max_length=len(ALL_OBJECTS),
        description="What happens to clusters, workloads and policies. Empty: nothing of it.",
    )
    schedule: Cron | None = Field(None, description="When it looks besides.")

    def next_start(self, now: datetime) -> datetime | None:
        """Return when the schedule starts next after an aware time; None if there is none."""
        if self.schedule is None:
            return None
        return self.starts_of(self.schedule).next_start(now)


class Hysteresis(RequestPart):
    """What a move has to gain, and how long everything stays as it is after a change.

    A replica leaves its cluster only if the plan is worth more by the largest of its move cost,
    `leastGain`, `leastGainPercent` of its value where it runs, and `variationMultiple` times the
    variation of the scores that are compared.
    """

    least_gain: float = Field(
        10.0,
        ge=0,
        le=1e6,
        description="Points of the score that a move has to gain; with several objectives, of"
        " their mean by weight.",
    )
    least_gain_percent: float = Field(
        0.0, ge=0, le=1000, description="The same as a percentage of its value now."
    )
    stabilization_window_seconds: int = Field(
        300,
        ge=0,
        le=MAX_SECONDS,
        description="Scores are averaged over so long, and after a change nothing moves for a"
        " better score for so long. 0: the last scores decide at once.",
    )
    variation_multiple: float = Field(
        4.0,
        ge=0,
        le=100,
        description="How many times the variation of both places' averaged scores a move has to"
        " gain; 0: their variation does not count.",
    )


class HoldSpec(RequestPart):
    """When nothing is applied although a plan is worth it."""

    until: Time | None = Field(None, description="Nothing is applied before this time.")
    reason: Annotated[Text, Field(max_length=256)] = Field(
        "", description="Why, in words for people; shown in the status."
    )
    after_rollback_seconds: int = Field(
        86_400,
        ge=0,
        le=31_536_000,
        description="Nothing is applied for so long after a plan was rolled back, so that what a"
        " person has undone is not done again. The annotation plan-requested-at ends it.",
    )


class Keeping(RequestPart):
    """The fields of a PlacementOptimization that say when a change is worth its moves."""

    triggers: Triggers = Field(Triggers(), description="What makes it look at once.")
    hysteresis: Hysteresis = Field(
        Hysteresis(), description="What a move has to gain, and how calm it has to be."
    )
    budgets: Annotated[tuple[MoveBudget, ...], FailFast()] = Field(
        (), max_length=20, description="The most moves within a period."
    )
    freezes: Annotated[tuple[Freeze, ...], FailFast()] = Field(
        (), max_length=50, description="Windows in which nothing moves for a better score."
    )
    schedules: Annotated[tuple[ScheduledObjective, ...], FailFast()] = Field(
        (),
        max_length=50,
        description="Scores that count in windows. Of several that are open the first one counts.",
    )
    hold: HoldSpec = Field(
        HoldSpec(), description="When nothing is applied although a plan is worth it."
    )

    def open_schedule(self, now: datetime) -> ScheduledObjective | None:
        """Return the scores that count instead of the request's; None if no window is open."""
        return next((item for item in self.schedules if item.open_until(now) is not None), None)
