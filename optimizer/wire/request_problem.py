"""A request that can't be fulfilled, as a value with the fields of RFC 9457."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dsf.api.untrusted_text import UntrustedName, one_line

UNAUTHORIZED = 401
FORBIDDEN = 403
NOT_FOUND = 404
UNPROCESSABLE = 422
CONFLICT = 409
TOO_MANY_REQUESTS = 429
CLIENT_CLOSED_REQUEST = 499
"""The number of nginx; it is never received."""
UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong field."""

    field: Annotated[str, Field(examples=["clusters[0].name"])]
    message: str
    available: Annotated[tuple[str, ...], Field(description="What exists instead.")] = ()

    def __post_init__(self) -> None:
        """Give each text the type by which a message shows it."""
        object.__setattr__(self, "field", one_line(self.field))
        object.__setattr__(self, "message", one_line(self.message))
        object.__setattr__(self, "available", tuple(map(UntrustedName, self.available)))


@dataclass(frozen=True, slots=True)
class RequestProblem:
    """Why nothing was done: `reason` is CamelCase, `status` the HTTP status that fits it.

    Reasons: Unauthorized (401), Forbidden (403), OptimizerForbidden (403), ReadOnly (403),
    UnknownNamespace (404), TooManyRequests (429), UnknownName (422), LowerIsBetter (422),
    TooManyPlaces (422), TooManyScores (422), NotGenerated (409), StalePlan (409), PlanChanged
    (409), AnotherWriter (409), RollbackRefused (409), NoEarlierPlan (409), UnusableRecord (409),
    PlanNotRecorded (409), UnknownPlan (404), RolloutInProgress (409), RolloutEnded (409),
    AlreadyTurningBack (409), StepwiseNeedsRecord (409), NoRollout (404), StepwiseNeedsOwnRights
    (422), TooManyMoves (422), RolloutTooLarge (422), Busy (429), CallerGone (499), HubRefused
    (503).
    """

    status: int
    reason: str
    title: str
    detail: str
    errors: tuple[FieldProblem, ...] = ()

    def __post_init__(self) -> None:
        """Quote what others wrote in the detail."""
        object.__setattr__(self, "detail", one_line(self.detail))


def optimizer_forbidden(
    missing: str, written: str, errors: tuple[FieldProblem, ...] = ()
) -> RequestProblem:
    """Return the problem that the hub forbids something to the optimizer itself.

    `missing`: the rights that it lacks; `written`: what became of the writes.
    """
    return RequestProblem(
        status=FORBIDDEN,
        reason="OptimizerForbidden",
        title="The optimizer itself lacks a right",
        detail=f"the optimizer may not: {missing}; {written}. Grant its service account"
        " this right with a Role and a RoleBinding, or a ClusterRole and a ClusterRoleBinding",
        errors=errors,
    )


CALLER_GONE = RequestProblem(
    status=CLIENT_CLOSED_REQUEST,
    reason="CallerGone",
    title="The caller did not wait",
    detail="nothing was written, because the caller disconnected",
)
