"""Constraints in few words: fields of a question, and what is remembered on workloads and clusters.

What is remembered are the annotations of `object_specs`, so that every plan keeps them.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from optimizer.wire.base import Name, ObjectName, RequestPart, ResultPart, Sentence, Text
from optimizer.wire.object_specs import Drain, Names
from optimizer.wire.request import Namespace

MAX_CONSTRAINTS = 100
"""Constraints of one kind in a question."""

_Count = Annotated[int, Field(ge=0, le=20_000)]
_Group = Annotated[Names, Field(min_length=2, max_length=MAX_CONSTRAINTS)]
_Sets = Annotated[tuple[_Group, ...], Field(max_length=MAX_CONSTRAINTS)]
_Places = Annotated[dict[ObjectName, Names], Field(max_length=MAX_CONSTRAINTS)]


def _named(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    if not all(isinstance(name, str) for name in value):
        raise ValueError('write ["worker01"], or {"worker01": {"until": "2026-11-28T06:00:00Z"}}')
    return dict.fromkeys(value, "always")


class Constraints(RequestPart):
    """What workloads and clusters are to keep to, by their names or parts of names."""

    apart: Annotated[_Sets, Field(description="Workloads that share no cluster.")] = ()
    together: Annotated[_Sets, Field(description="Workloads that share each cluster.")] = ()
    pin: Annotated[
        _Places, Field(description="Workload to the clusters that it may run on; no others.")
    ] = Field(default_factory=dict)
    exclude: Annotated[_Places, Field(description="Workload to clusters that it must not use.")] = (
        Field(default_factory=dict)
    )
    at_least: Annotated[
        dict[ObjectName, Annotated[_Count, Field(ge=1)]],
        Field(max_length=MAX_CONSTRAINTS, description="Workload to the clusters that it needs."),
    ] = Field(default_factory=dict)
    at_most: Annotated[
        dict[ObjectName, _Count],
        Field(max_length=MAX_CONSTRAINTS, description="Cluster to the most workloads there."),
    ] = Field(default_factory=dict)
    drain: Annotated[
        dict[ObjectName, Drain],
        BeforeValidator(_named, json_schema_input_type=list[ObjectName] | dict[ObjectName, Drain]),
        Field(
            max_length=MAX_CONSTRAINTS,
            description="Clusters that no workload may use, or cluster to when.",
        ),
    ] = Field(default_factory=dict)


Forgotten = Annotated[
    dict[ObjectName, Annotated[tuple[Name, ...], Field(max_length=20)]],
    Field(
        max_length=MAX_CONSTRAINTS,
        description="Workload or cluster to constraints, such as drain; none: all of it.",
    ),
]


class ConstraintsRequest(RequestPart):
    """The body of POST /constraints: what is kept from now on, and what no longer."""

    namespace: Namespace
    remember: Constraints = Constraints()
    forget: Forgotten = Field(default_factory=dict)
    dry_run: bool = Field(default=False, description="Say what would be written; write nothing.")


class RememberedConstraint(ResultPart):
    """A constraint that a workload or a cluster has in an annotation."""

    kind: Annotated[str, Field(description="workload or managed cluster")]
    name: Name
    constraint: Annotated[str, Field(description="Such as pin; POST /constraints forgets it.")]
    annotation: Annotated[str, Field(description="Its name without the prefix.")]
    value: Annotated[Text, Field(description="The text of the annotation.")]
    message: Sentence
    in_force: Annotated[bool, Field(description="False: a drain that does not hold now.")] = True


class ConstraintList(ResultPart):
    """The response of GET /constraints, and of POST /constraints with what that wrote."""

    namespace: Name
    items: tuple[RememberedConstraint, ...]
    commands: Annotated[
        tuple[Sentence, ...],
        Field(description="What was written, or would be, as commands that write the same."),
    ] = ()
    written: bool = False
