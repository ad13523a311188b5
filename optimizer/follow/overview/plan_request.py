"""The body and the response of POST /plan: a question in few words, and its complete request."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.api.optimization import generating_optimization
from dsf.api.untrusted_text import UntrustedName
from optimizer.follow.overview.constraints.constraint_fields import Constraints
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.what_if import WhatIf
from optimizer.follow.record.plan_history import ObjectiveInForce, meant_optimization
from optimizer.plan.generated_objects import selects_no_cluster
from optimizer.snapshot.object_readers import labels_of
from optimizer.wire.base import Document, Name, RequestPart
from optimizer.wire.request import Aggregation, Namespace
from optimizer.wire.request_problem import (
    FieldProblem,
    RequestProblem,
    invalid_request,
    refused_fields,
)
from optimizer.wire.result import OptimizeResult

MAX_WEIGHTS = 20
"""Scores of one objective: POST /optimize takes no more."""

MAX_NAMES = 1_000
"""Clusters or workloads that a question names; without names it means all of them."""

DEFAULT_NAMESPACE = "default"
"""The namespace of a question that says none."""

SearchedName = Annotated[str, Field(min_length=1, max_length=253)]

_NAMESPACE: TypeAdapter[str] = TypeAdapter(Namespace)


@dataclass(frozen=True, slots=True)
class PartialRequest:
    """What a caller stated of a request; `complete_question` fills in the rest.

    `objective`: weights by score name or a part of it. `clusters`, `workloads`: names or parts of
    them; empty: all that carry the labels. `further`: fields of POST /optimize that are taken over.
    `namespace`: empty if it is not stated. `aggregation`: of each score of the objective.
    """

    objective: Mapping[str, float]
    clusters: Sequence[str] = ()
    workloads: Sequence[str] = ()
    what_if: WhatIf = field(default_factory=WhatIf)
    further: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""
    aggregation: Aggregation | None = None

    @property
    def optimization(self) -> str:
        """The optimization that has the objective in force, unless one is stated."""
        return str(self.further.get("optimization", DEFAULT_OPTIMIZATION))

    @property
    def needs_objective(self) -> bool:
        """Whether it states no objective."""
        return not self.objective and "preference" not in self.further

    @property
    def is_whole_request(self) -> bool:
        """Whether `further` is a body of POST /optimize and nothing else is stated."""
        names = (self.objective, self.clusters, self.workloads)
        whole = {"clusters", "targetWorkloads"} <= self.further.keys()
        return whole and not any(names) and self.what_if == WhatIf()


class PlanRequest(RequestPart):
    """A question for a plan: each field has a default, and a unique part of a name is enough."""

    namespace: Namespace = DEFAULT_NAMESPACE
    objective: Annotated[
        dict[Name, Annotated[float, Field(ge=0)]],
        Field(
            max_length=MAX_WEIGHTS,
            description="Weight by score; higher weights count more. Default: the objective of the"
            " PlacementOptimization of this optimization, else that of the plan in force.",
        ),
    ] = Field(default_factory=dict)
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
            description="Further fields of POST /optimize, such as explain, limits or rollout; what"
            " the question says itself is refused here.",
        ),
    ] = Field(default_factory=dict)

    @property
    def partial(self) -> PartialRequest:
        """What the caller stated."""
        return PartialRequest(
            self.objective,
            self.clusters,
            self.workloads,
            self.what_if,
            self.request,
            self.namespace if "namespace" in self.model_fields_set else "",
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
    objective_from: Annotated[
        ObjectiveInForce | None,
        Field(description="What is in force, if the question says no objective; else null."),
    ] = None


def with_namespace(partial: PartialRequest) -> PartialRequest | RequestProblem:
    """Return it with its namespace; a problem if its parts contradict each other."""
    problems = tuple(_contradictions(partial))
    if problems:
        return invalid_request(problems)
    there = partial.further.get("namespace", DEFAULT_NAMESPACE)
    return replace(partial, namespace=partial.namespace or there)


def with_optimization(
    facts: FleetFacts, partial: PartialRequest, kept: Iterable[str] = ()
) -> PartialRequest | RequestProblem:
    """Return it with its optimization: `default` if the namespace has that, else its only one.

    `kept`: the names of its PlacementOptimizations. Refused, with the names, if it has several.
    """
    placing = (obj for obj in facts.observation.placements if not selects_no_cluster(obj))
    owners = (generating_optimization(labels_of(obj)) for obj in placing)
    names = {*kept, *filter(None, owners)}
    found = meant_optimization(facts.namespace, names, "request.optimization")
    if "optimization" in partial.further or found == DEFAULT_OPTIMIZATION:
        return partial
    if isinstance(found, RequestProblem):
        return found
    return replace(partial, further={**partial.further, "optimization": found})


_SAID_AS: Mapping[str, str] = {
    "targetWorkloads": "workloads",
    "preference": "objective",
    "objectives": "objective",
    "limits": "what_if.budget",
}
"""How a question says the fields of POST /optimize that it completes."""


def of_question(problem: RequestProblem, partial: PartialRequest) -> RequestProblem:
    """Return the problem of a complete request, with its fields as the question says them."""
    errors = tuple(replace(item, field=_said_as(item.field, partial)) for item in problem.errors)
    renamed = replace(problem, errors=errors)
    return invalid_request(errors) if problem == invalid_request(problem.errors) else renamed


def _said_as(field: str, partial: PartialRequest) -> str:
    name = re.split(r"[.\[]", field)[0]
    of_request = partial.is_whole_request or name in partial.further
    return f"request.{field}" if of_request else _SAID_AS.get(name, field)


def read_objective(text: str) -> dict[str, float] | RequestProblem:
    """Return the weights of scores: `power`, or `performance: 2, power: 1`."""
    weights: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, weight = part.partition(":")
        try:
            weights[name.strip()] = float(weight or 1)
        except ValueError:
            message = f"{UntrustedName(weight.strip())} is no weight; say `power: 2`"
            wrong = FieldProblem("objective", message)
            return refused_fields("InvalidObjective", "The objective can't be read", wrong)
    return weights


def _contradictions(partial: PartialRequest) -> Iterator[FieldProblem]:
    """Yield the fields of POST /optimize that say again what the question says itself."""
    what_if, further = partial.what_if, partial.further
    said = {f"what_if.{name}": getattr(what_if, name) for name in Constraints.model_fields}
    of_clusters = {name: said.pop(name) for name in ("what_if.at_most", "what_if.drain")}
    own: dict[str, dict[str, Any]] = {
        "clusters": {
            "clusters": partial.clusters,
            "what_if.lose": what_if.lose,
            "what_if.add": what_if.add,
            "what_if.policies": what_if.policies,
            **of_clusters,
        },
        "targetWorkloads": {"workloads": partial.workloads, "what_if.run": what_if.run, **said},
        "preference": {"objective": partial.objective},
        "objectives": {"objective": partial.objective},
    }
    for name in filter(further.__contains__, own):
        others = ", ".join(f"{other}" for other, value in own[name].items() if value)
        if others:
            yield _problem_in_request(name, f"the question says {others} too; say one of them")
    if "objectives" in further and partial.needs_objective:
        yield _problem_in_request("objectives", "say preference too, or objective with each weight")
    if "namespace" in further:
        there = further["namespace"]
        try:
            _NAMESPACE.validate_python(there)
        except ValidationError as error:
            yield _problem_in_request("namespace", error.errors()[0]["msg"])
            return
        if partial.namespace not in ("", there):
            asked = partial.namespace
            message = f"the question is about namespace {asked}; say it as its namespace"
            yield _problem_in_request("namespace", message)


def _problem_in_request(name: str, message: str) -> FieldProblem:
    return FieldProblem(f"request.{name}", message)
