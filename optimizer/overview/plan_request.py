"""The body and the response of POST /plan: a question in few words, and its complete request."""

from typing import Annotated, Any

from pydantic import Field

from optimizer.overview.planning_request import PlanningWish
from optimizer.overview.what_if import WhatIf
from optimizer.wire.base import Document, Name, RequestPart
from optimizer.wire.request import Namespace
from optimizer.wire.result import OptimizeResult

MAX_WEIGHTS = 20
"""Scores of one objective: POST /optimize takes no more."""

MAX_NAMES = 1_000
"""Clusters or workloads that a question names; without names it means all of them."""

SearchedName = Annotated[str, Field(min_length=1, max_length=253)]


class PlanRequest(RequestPart):
    """What is to be planned, as far as it is said. A name may be a part of one, if it is clear."""

    namespace: Namespace = "default"
    objective: Annotated[
        dict[Name, Annotated[float, Field(ge=0)]],
        Field(max_length=MAX_WEIGHTS, description="Weight by score; higher weights count more."),
    ]
    clusters: Annotated[
        tuple[SearchedName, ...], Field(max_length=MAX_NAMES, description="None: all clusters.")
    ] = ()
    workloads: Annotated[
        tuple[SearchedName, ...],
        Field(max_length=MAX_NAMES, description="None: all with the labels of a request."),
    ] = ()
    what_if: WhatIf = WhatIf()
    request: Annotated[
        dict[str, Any],
        Field(
            max_length=MAX_WEIGHTS,
            description="Further fields of POST /optimize, such as explain, whyNot or rollout.",
        ),
    ] = Field(default_factory=dict)

    @property
    def wish(self) -> PlanningWish:
        """What somebody wants planned."""
        return PlanningWish(
            self.objective, self.clusters, self.workloads, self.what_if, self.request
        )


class PlanResult(OptimizeResult):
    """The response of POST /plan: a plan that was not applied, and how to apply it."""

    request: Annotated[
        Document | None,
        Field(
            description="The complete request. POST /optimize?expected_digest=... with it applies"
            " exactly this plan. null: the question pretends clusters or scores, so that it can't"
            " be applied."
        ),
    ]
