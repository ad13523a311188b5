"""The requests of the HTTP API: POST /optimize and POST /reset.

Field names are the wire contract's. Unknown fields are refused, so that a misspelt one is not
ignored silently. Each list is validated up to its first wrong item, so that the error stays small
however much of the body is wrong.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BeforeValidator, FailFast, Field, model_validator

from dsf.api.invalid_input import InvalidInput
from dsf.api.names import score_object_name
from dsf.api.scoring.dimension_format import DimensionFormat
from optimizer.wire.base import ObjectName, RequestPart, require_unique
from optimizer.wire.explanation_request import WhyNotQuestion
from optimizer.wire.mig_request import GpuNode, MigOptions, require_distinct_nodes
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, Selector, WorkloadSpec
from optimizer.wire.spelling_suggestions import known_fields

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


MAX_MISSING_SCORE = 1e6
"""The largest value of a missing score, positive or negative; scores are within -100..100."""


def _missing_score(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or value == "forbid" or (number and abs(value) <= MAX_MISSING_SCORE):
        return value
    raise ValueError(
        f"must be 'forbid' or a number from {-MAX_MISSING_SCORE:.0f} to {MAX_MISSING_SCORE:.0f}"
    )


class NamedPolicy(RequestPart):
    """A policy that may be enforced on the cluster."""

    name: ObjectName


class RequestedPolicy(NamedPolicy, PolicySpec):
    """A policy that may be enforced on the cluster, and what is said about it here."""


class NamedCluster(RequestPart):
    """A managed cluster and the policies of which at most one is enforced there."""

    name: ObjectName
    available_policies: Annotated[
        tuple[NamedPolicy, ...],
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
        require_unique([policy.name for policy in self.available_policies], "policy")
        require_distinct_nodes(self.gpus)
        return self


class RequestedCluster(NamedCluster, ClusterSpec):
    """A managed cluster, its candidate policies, and what is said about it here."""

    available_policies: Annotated[
        tuple[RequestedPolicy, ...],
        FailFast(),
        Field(max_length=1000, description="Candidates, the first one winning ties."),
    ] = ()


class NamedWorkload(RequestPart):
    """A ManifestWorkReplicaSet to be placed."""

    name: ObjectName


class RequestedWorkload(NamedWorkload, WorkloadSpec):
    """A ManifestWorkReplicaSet to be placed, and what is said about it here."""


class ScoreRef(RequestPart):
    """A named score, and how its entries are named."""

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
            case InvalidInput(_, message):
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
        if isinstance(parsed, InvalidInput):
            raise TypeError(parsed.message)
        return parsed

    @property
    def key(self) -> str:
        """What this score is called where several are read: its name, and its form if not usual."""
        form = self.score_dimension_format
        return self.score_name if form == DEFAULT_FORMAT else f"{self.score_name} {form}"


class Preference(ScoreRef):
    """Which score decides, what it weighs, and how its entries are named."""

    weight: Annotated[
        float, Field(ge=0, le=1e6, description="What the score is multiplied by.")
    ] = 1.0
    minimum: Annotated[
        float | None, Field(description="With maximum: scores count from 0 here to 100 there.")
    ] = None
    maximum: float | None = None
    invert: Annotated[bool, Field(description="Less is better.")] = False

    @model_validator(mode="after")
    def _range(self) -> Self:
        if (self.minimum is None) != (self.maximum is None):
            raise ValueError("minimum and maximum: state both or none")
        if self.minimum is not None and self.maximum is not None and self.minimum >= self.maximum:
            raise ValueError("minimum: must be less than maximum")
        return self


class RequestedLimit(RequestPart):
    """At most so much of a score, or of what workloads and policies say they use of `uses`."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    maximum: Annotated[float, Field(ge=0, le=1e18)]
    score: Annotated[
        ScoreRef | None, Field(description="Each place counts its score; below 0 counts as 0.")
    ] = None
    uses: Annotated[
        str, Field(max_length=253, description="Counts what `uses` says under this name.")
    ] = ""
    cluster_selector: Annotated[
        Selector, Field(description="Only clusters whose labels meet it count.")
    ] = ""
    per: Annotated[
        str, Field(max_length=317, description="For each value of this cluster label by itself.")
    ] = ""

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if (self.score is None) == (not self.uses):
            raise ValueError("name what counts: either score or uses")
        return self


class OptimizeRequest(RequestPart):
    """What to place where: the body of POST /optimize."""

    namespace: Namespace
    clusters: Annotated[
        tuple[RequestedCluster, ...], FailFast(), Field(min_length=1, max_length=20_000)
    ]
    target_workloads: Annotated[
        tuple[RequestedWorkload, ...], FailFast(), Field(min_length=1, max_length=100_000)
    ]
    preference: Preference
    objectives: Annotated[
        tuple[Preference, ...],
        FailFast(),
        Field(max_length=20, description="Further scores; the value of a place is the sum."),
    ] = ()
    limits: Annotated[
        tuple[RequestedLimit, ...],
        FailFast(),
        Field(max_length=100, description="Fleet-wide limits."),
    ] = ()
    missing_score: Annotated[
        Literal["forbid"]
        | Annotated[float, Field(ge=-MAX_MISSING_SCORE, le=MAX_MISSING_SCORE)]
        | None,
        BeforeValidator(_missing_score),
        Field(description="What a place without a usable score is worth; else as the server says."),
    ] = None
    gap: Annotated[
        float | None,
        Field(
            ge=0,
            lt=1,
            description="Good enough is this share below what is proven possible; else as the"
            " server says.",
        ),
    ] = None
    mig: Annotated[
        MigOptions | None, Field(description="How generated policies may reconfigure GPUs.")
    ] = None
    dry_run: Annotated[bool, Field(description="Only plan, write nothing.")] = False
    explain: Annotated[
        bool, Field(description="Add an explanation, for at most as long as solving may take.")
    ] = False
    why_not: Annotated[
        tuple[WhyNotQuestion, ...],
        FailFast(),
        Field(max_length=100, description="Places and policies to be explained as well."),
    ] = ()
    pareto: Annotated[
        tuple[str, ...],
        Field(max_length=3, description="Two or three scores to find a Pareto set of."),
    ] = ()

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        require_unique([cluster.name for cluster in self.clusters], "cluster")
        require_unique([workload.name for workload in self.target_workloads], "workload")
        require_unique([score.key for score in self.scored], "score")
        require_unique([limit.name for limit in self.limits], "limit")
        return self

    @model_validator(mode="after")
    def _scores_for_pareto(self) -> Self:
        require_unique(self.pareto, "score of pareto")
        known = [score.key for score in self.scored]
        unknown = [name for name in self.pareto if name not in known]
        if unknown:
            raise ValueError(f"pareto: {unknown[0]!r} is none of the scores {', '.join(known)}")
        if len(self.pareto) == 1:
            raise ValueError("pareto: name two or three scores")
        return self

    @property
    def explained(self) -> bool:
        """Whether anything of an explanation is asked for."""
        return self.explain or bool(self.why_not) or bool(self.pareto)

    @property
    def cluster_names(self) -> frozenset[str]:
        """The names of the clusters."""
        return frozenset(cluster.name for cluster in self.clusters)

    @property
    def score_names(self) -> frozenset[str]:
        """The names of the AddOnPlacementScores that are read."""
        return frozenset(score.score_name for _, score in self.read_scores)

    @property
    def scored(self) -> tuple[Preference, ...]:
        """The scores that make the value of a place."""
        return (self.preference, *self.objectives)

    @property
    def read_scores(self) -> tuple[tuple[str, ScoreRef], ...]:
        """Every score that is read, once, with the field that names it first."""
        named: list[tuple[str, ScoreRef]] = [("preference", self.preference)]
        named += [(f"objectives[{i}]", score) for i, score in enumerate(self.objectives)]
        named += [
            (f"limits[{i}].score", limit.score)
            for i, limit in enumerate(self.limits)
            if limit.score is not None
        ]
        first: dict[str, tuple[str, ScoreRef]] = {}
        for field, score in named:
            first.setdefault(score.key, (field, score))
        return tuple(first.values())


REQUEST_FIELDS = known_fields(OptimizeRequest)
"""The fields of a request and of what it holds, to tell what a misspelt one may mean."""


class ResetRequest(RequestPart):
    """Whose generated objects to delete: the body of POST /reset."""

    namespace: Namespace
