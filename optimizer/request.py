"""The requests of the HTTP API: POST /optimize and POST /reset.

Field names are the wire contract's. Unknown fields are refused, so that a misspelt one is not
silently without effect. A list is read up to its first wrong member, so that what is said about a
body stays small however much of it is wrong.
"""

from typing import Annotated, Self

from pydantic import AliasChoices, FailFast, Field, model_validator

from dsf.api.dimension import DimensionFormat
from dsf.api.invalid import Invalid
from dsf.api.names import score_object_name
from optimizer.mig.request import GpuNode, MigOptions, check_nodes
from optimizer.wire import ObjectName, Wire, once

DEFAULT_FORMAT = "${app};${device}"

_SCORE_NAMES = ("addonPlacementScore", "addOnPlacementScore")

Namespace = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        description="Namespace of the policies and workloads, and of what is generated.",
    ),
]


class PolicyChoice(Wire):
    """A policy that may be enforced on the cluster."""

    name: ObjectName


class ClusterChoice(Wire):
    """A managed cluster and the policies of which at most one is enforced there."""

    name: ObjectName
    available_policies: Annotated[
        tuple[PolicyChoice, ...],
        FailFast(),
        Field(max_length=1000, description="Candidates, the first one winning ties."),
    ] = ()
    gpus: Annotated[
        tuple[GpuNode, ...],
        FailFast(),
        Field(max_length=64, description="GPUs for which MIG policies are generated as well."),
    ] = ()

    @model_validator(mode="after")
    def _policies_once(self) -> Self:
        once([policy.name for policy in self.available_policies], "policy")
        check_nodes(self.gpus)
        return self


class WorkloadChoice(Wire):
    """A ManifestWorkReplicaSet to be placed."""

    name: ObjectName


class Preference(Wire):
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


class OptimizeRequest(Wire):
    """What to place where: the body of POST /optimize."""

    namespace: Namespace
    clusters: Annotated[
        tuple[ClusterChoice, ...], FailFast(), Field(min_length=1, max_length=20_000)
    ]
    target_workloads: Annotated[
        tuple[WorkloadChoice, ...], FailFast(), Field(min_length=1, max_length=100_000)
    ]
    preference: Preference
    mig: Annotated[
        MigOptions | None, Field(description="How generated policies may reconfigure GPUs.")
    ] = None
    dry_run: Annotated[bool, Field(description="Only plan, write nothing.")] = False

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        once([cluster.name for cluster in self.clusters], "cluster")
        once([workload.name for workload in self.target_workloads], "workload")
        return self


class ResetRequest(Wire):
    """Whose generated objects to delete: the body of POST /reset."""

    namespace: Namespace
