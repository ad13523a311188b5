"""The requests of the HTTP API: POST /optimize and POST /reset.

Field names are the wire contract's. Unknown fields are refused, so that a misspelt one is not
silently without effect. A list is read up to its first wrong member, so that what is said about a
body stays small however much of it is wrong.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, FailFast, Field, model_validator
from pydantic.alias_generators import to_camel

from dsf.api.dimension import DimensionFormat
from dsf.api.invalid import Invalid
from dsf.api.names import score_object_name

DEFAULT_FORMAT = "${app};${device}"

_MOST_FIELDS = 20
_SCORE_NAMES = ("addonPlacementScore", "addOnPlacementScore")

ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        description="Name of a Kubernetes object.",
    ),
]
Namespace = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        description="Namespace of the policies and workloads, and of what is generated.",
    ),
]


class _Request(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid"
    )

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and len(value) > _MOST_FIELDS:
            raise ValueError(f"it has more than {_MOST_FIELDS} fields")
        return value


class PolicyChoice(_Request):
    """A policy that may be enforced on the cluster."""

    name: ObjectName


class ClusterChoice(_Request):
    """A managed cluster and the policies of which at most one is enforced there."""

    name: ObjectName
    available_policies: Annotated[
        tuple[PolicyChoice, ...],
        FailFast(),
        Field(max_length=1000, description="Candidates, the first one winning ties."),
    ] = ()

    @model_validator(mode="after")
    def _policies_once(self) -> Self:
        _once([policy.name for policy in self.available_policies], "policy")
        return self


class WorkloadChoice(_Request):
    """A ManifestWorkReplicaSet to be placed."""

    name: ObjectName


class Preference(_Request):
    """Which score decides, and how its entries are named."""

    add_on_placement_score: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            validation_alias=AliasChoices(*_SCORE_NAMES, "add_on_placement_score"),
            serialization_alias=_SCORE_NAMES[0],
            description="Name of the AddOnPlacementScores, one in each cluster's namespace;"
            " addOnPlacementScore is accepted too.",
        ),
    ]
    score_dimension_format: Annotated[
        str,
        Field(
            max_length=1024,
            description="How score entries are named after ${app} and ${device}.",
        ),
    ] = DEFAULT_FORMAT

    @model_validator(mode="after")
    def _usable(self) -> Self:
        match DimensionFormat.parse(self.score_dimension_format):
            case Invalid(_, message):
                raise ValueError(f"scoreDimensionFormat: {message}")
        if not score_object_name(self.add_on_placement_score):
            raise ValueError(f"{_SCORE_NAMES[0]}: no object can have this name")
        return self

    @property
    def score_name(self) -> str:
        """The name of the AddOnPlacementScore objects."""
        return score_object_name(self.add_on_placement_score)

    @property
    def dimension(self) -> DimensionFormat:
        """The parsed dimension format."""
        parsed = DimensionFormat.parse(self.score_dimension_format)
        if isinstance(parsed, Invalid):
            raise TypeError(parsed.message)
        return parsed


class OptimizeRequest(_Request):
    """What to place where: the body of POST /optimize."""

    namespace: Namespace
    clusters: Annotated[
        tuple[ClusterChoice, ...], FailFast(), Field(min_length=1, max_length=20_000)
    ]
    target_workloads: Annotated[
        tuple[WorkloadChoice, ...], FailFast(), Field(min_length=1, max_length=100_000)
    ]
    preference: Preference
    dry_run: Annotated[bool, Field(description="Only plan, write nothing.")] = False

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        _once([cluster.name for cluster in self.clusters], "cluster")
        _once([workload.name for workload in self.target_workloads], "workload")
        return self


class ResetRequest(_Request):
    """Whose generated objects to delete: the body of POST /reset."""

    namespace: Namespace


def _once(names: Sequence[str], what: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"{what} named twice: {', '.join(twice[:10])}")
