"""The requests of the HTTP API: POST /optimize, POST /rollback and POST /reset.

The wire contract defines the field names. Unknown fields are refused, so that a misspelt field is
not ignored. Validation of a list stops at its first wrong item, so that the error message stays
short.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BeforeValidator, FailFast, Field, model_validator

from dsf.api import name_syntax
from dsf.api.names import DEFAULT_OPTIMIZATION, score_object_name
from dsf.api.optimization import Optimization
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.untrusted_text import InvalidInput, listed
from optimizer.wire.base import Name, ObjectName, RequestPart, Text, require_unique
from optimizer.wire.explanation import WhyNotQuestion
from optimizer.wire.mig_request import GpuNode, MigOptions, require_distinct_nodes
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, Selector, Tolerations, WorkloadSpec
from optimizer.wire.rollout import RolloutStrategy

DEFAULT_FORMAT = "${app};${device}"

Aggregation = Literal["Max", "Min", "Mean"]
"""Which of several entries counts that differ in what a place does not have, such as the node."""

_SCORE_NAMES = ("addonPlacementScore", "addOnPlacementScore")

Namespace = Annotated[
    str,
    Field(
        min_length=1,
        max_length=name_syntax.DNS_LABEL_LENGTH,
        pattern=name_syntax.DNS_LABEL,
        description="Namespace of the policies and workloads, and of what is generated.",
    ),
]

OptimizationName = Annotated[
    str, Field(min_length=1, max_length=name_syntax.DNS_LABEL_LENGTH, pattern=name_syntax.DNS_LABEL)
]

MAX_ROLLOUT_SECONDS = 604_800
"""The longest deadline of a step, a week: a person may have to repair a node first."""

MAX_MISSING_SCORE = 1e6
"""The largest value of a missing score, positive or negative; scores are within -100..100."""


def _missing_score(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or value == "forbid" or (number and abs(value) <= MAX_MISSING_SCORE):
        return value
    raise ValueError(
        f"must be 'forbid' or a number from {-MAX_MISSING_SCORE:.0f} to {MAX_MISSING_SCORE:.0f}"
    )


class RequestedPolicy(PolicySpec):
    """A policy that may be enforced on the cluster, with fields that replace its annotations."""

    name: ObjectName


class RequestedCluster(ClusterSpec):
    """A managed cluster and its candidate policies, with fields that replace its annotations."""

    name: ObjectName
    available_policies: Annotated[tuple[RequestedPolicy, ...], FailFast()] = Field(
        (),
        max_length=1000,
        description="Policies; at most one of them is enforced. The first one wins a tie.",
    )
    gpus: Annotated[tuple[GpuNode, ...], FailFast()] = Field(
        (), max_length=64, description="GPUs of the cluster. MIG policies are generated for them."
    )

    @model_validator(mode="after")
    def _policies_once(self) -> Self:
        require_unique([policy.name for policy in self.available_policies], "policy")
        require_distinct_nodes(self.gpus)
        return self


class RequestedWorkload(WorkloadSpec):
    """A ManifestWorkReplicaSet to place, with fields that replace its annotations."""

    name: ObjectName


class ScoreRef(RequestPart):
    """An AddOnPlacementScore by name, and the format of its entries' names."""

    add_on_placement_score: Annotated[
        Name,
        Field(
            min_length=1,
            max_length=253,
            validation_alias=AliasChoices(*_SCORE_NAMES, "add_on_placement_score"),
            serialization_alias=_SCORE_NAMES[0],
            description="Name of the AddOnPlacementScore in each cluster's namespace."
            " The field may also be spelled addOnPlacementScore.",
        ),
    ]
    score_dimension_format: Annotated[Text, Field(max_length=1024)] | None = Field(
        None,
        description="Format of the names of the entries to read. Default: all formats that the"
        " score's DynamicScorer declares.",
    )
    aggregation: Aggregation | None = Field(
        None,
        description="Which of several entries counts that differ in what a place does not have,"
        " such as the node. Default: the best, so Max, or Min with invert.",
    )
    at: str | None = Field(
        None,
        pattern=r"^p[1-9][0-9]?(\.[0-9]{1,3})?$",
        description="Quantile of a forecast, such as p90. Of formats with ${meta} the entries count"
        " whose meta is p90; else the score counts as it is, if its DynamicScorer declares that"
        " it forecasts this quantile. Other scores are refused.",
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        match self.dimension:
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
    def dimension(self) -> DimensionFormat | InvalidInput | None:
        """The parsed dimension format, which is valid after validation; None if none is stated."""
        stated = self.score_dimension_format
        return None if stated is None else DimensionFormat.parse(stated)

    @property
    def key(self) -> str:
        """The name that tells scores apart: its name, and what the request states of its entries.

        The format `${app};${device}` is left out.
        """
        form = self.score_dimension_format
        stated = ("" if form == DEFAULT_FORMAT else form, self.aggregation, self.at)
        return " ".join((self.score_name, *filter(None, stated)))

    @property
    def best_entry(self) -> Aggregation:
        """Which entry is the best of several."""
        return "Max"


class Preference(ScoreRef):
    """A score that is maximised, its weight, and the format of its entries' names."""

    weight: float = Field(1.0, ge=0, le=1e6, description="The score is multiplied by this number.")
    minimum: float | None = Field(
        None, description="With maximum: this score counts as 0, and the maximum as 100."
    )
    maximum: float | None = Field(None, description="With minimum: this score counts as 100.")
    invert: bool = Field(False, description="A lower score is better.")
    minimum_trust: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The least trust with which a cluster's forecasts count in full, where"
        " its scorer declares a truth. Unknown trust counts in full.",
    )
    untrusted: Literal["Weigh", "Refuse"] = Field(
        "Weigh",
        description="Scores with less than minimumTrust. Weigh: trust / minimumTrust of them"
        " counts, and for the rest the mean of the score. Refuse: they count as missing.",
    )

    @property
    def best_entry(self) -> Aggregation:
        """Which entry is the best of several."""
        return "Min" if self.invert else "Max"

    @model_validator(mode="after")
    def _trust_asked(self) -> Self:
        if "untrusted" in self.model_fields_set and self.minimum_trust is None:
            raise ValueError("untrusted: state minimumTrust too")
        return self

    @model_validator(mode="after")
    def _range(self) -> Self:
        if (self.minimum is None) != (self.maximum is None):
            raise ValueError("minimum and maximum: state both or none")
        if self.minimum is not None and self.maximum is not None and self.minimum >= self.maximum:
            raise ValueError("minimum: must be less than maximum")
        return self


class RequestedLimit(RequestPart):
    """A limit on a sum over the fleet: of a score, or of the amounts in the field `uses`."""

    name: Annotated[Name, Field(min_length=1, max_length=100, description="A name for messages.")]
    maximum: float = Field(ge=0, le=1e18, description="The most that the sum may be.")
    score: ScoreRef | None = Field(
        None, description="Sums this score over all assignments; a score below 0 counts as 0."
    )
    uses: Annotated[
        Name,
        Field(
            max_length=253,
            description="Sums the amounts that workloads and policies name so in their `uses`.",
            examples=["watts"],
        ),
    ] = ""
    cluster_selector: Selector = Field(
        "", description="Label selector: only clusters that match it are counted."
    )
    per: Annotated[
        Name,
        Field(max_length=317, description="The limit holds for each value of this cluster label."),
    ] = ""

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if (self.score is None) == (not self.uses):
            raise ValueError("name one of score and uses")
        return self


class OptimizeRequest(RequestPart):
    """The body of POST /optimize: clusters, workloads to place, and the scores to maximise."""

    namespace: Namespace
    optimization: OptimizationName = Field(
        DEFAULT_OPTIMIZATION,
        description="Name of the optimization. Generated objects of other names are neither"
        " changed nor deleted; within a name a request is the whole truth.",
    )
    clusters: Annotated[tuple[RequestedCluster, ...], FailFast()] = Field(
        min_length=1, max_length=20_000
    )
    target_workloads: Annotated[tuple[RequestedWorkload, ...], FailFast()] = Field(
        min_length=1, max_length=100_000
    )
    preference: Preference
    objectives: Annotated[tuple[Preference, ...], FailFast()] = Field(
        (),
        max_length=20,
        description="Further scores. An assignment is worth the sum of all weighted scores.",
    )
    limits: Annotated[tuple[RequestedLimit, ...], FailFast()] = Field(
        (), max_length=100, description="Limits on sums over the fleet, such as power."
    )
    missing_score: Annotated[
        Literal["forbid"]
        | Annotated[float, Field(ge=-MAX_MISSING_SCORE, le=MAX_MISSING_SCORE)]
        | None,
        BeforeValidator(_missing_score),
    ] = Field(
        None,
        description="Value of an assignment that has no usable score, or forbid."
        " Default: what the server is started with.",
    )
    gap: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Optimality gap at which solving may stop, such as 0.01."
        " Default: what the server is started with.",
    )
    mig: MigOptions | None = Field(None, description="How MIG policies are generated for GPUs.")
    tolerations: Tolerations = Field(
        (), description="Taints of managed clusters that every generated Placement tolerates."
    )
    cluster_sets: Annotated[tuple[ObjectName, ...], FailFast()] = Field(
        (),
        max_length=1000,
        description="Only these ManagedClusterSets; else all that the namespace is bound to.",
    )
    prune: bool = Field(
        True,
        description="Remove placed workloads of the same optimization that the request does not"
        " name. With false they stay, and what they use is not planned again.",
    )
    dry_run: bool = Field(False, description="Return the plan and write nothing.")
    rollout: RolloutStrategy = Field(
        "AllAtOnce",
        description="Stepwise: make the changes step by step; each step waits until the one"
        " before it is in force.",
    )
    progress_deadline_seconds: int = Field(
        600,
        ge=1,
        le=MAX_ROLLOUT_SECONDS,
        description="Seconds that a step of a Stepwise rollout may take before it is reported"
        " as ProgressDeadlineExceeded. It keeps waiting.",
    )
    min_ready_seconds: int = Field(
        60,
        ge=0,
        le=MAX_ROLLOUT_SECONDS,
        description="Seconds that policies which a step enforced must stay compliant, claims"
        " included, before the next step.",
    )
    explain: bool = Field(
        False, description="Add an explanation. It takes at most as long as solving may take."
    )
    explain_workloads: tuple[Name, ...] = Field(
        (),
        max_length=100,
        description="Explain only why these workloads are where they are, or have no place: that"
        " takes less time than the whole explanation.",
    )
    why_not: Annotated[tuple[WhyNotQuestion, ...], FailFast()] = Field(
        (),
        max_length=100,
        description="Assignments and policies to force; the cost of each is computed.",
    )
    pareto: tuple[Name, ...] = Field(
        (), max_length=3, description="Names of two or three scores to compute a Pareto set for."
    )

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
            raise ValueError(f"pareto: {unknown[0]!r} is none of the scores {listed(known)}")
        if len(self.pareto) == 1:
            raise ValueError("pareto: name two or three scores")
        return self

    @model_validator(mode="after")
    def _workloads_to_explain(self) -> Self:
        require_unique(self.explain_workloads, "workload of explainWorkloads")
        known = {item.name for item in self.target_workloads}
        unknown = [name for name in self.explain_workloads if name not in known]
        if unknown:
            raise ValueError(f"explainWorkloads: {unknown[0]!r} is none of the targetWorkloads")
        return self

    @property
    def explained(self) -> bool:
        """Whether the request asks for any part of an explanation."""
        return self.explain or any((self.explain_workloads, self.why_not, self.pareto))

    @property
    def owner(self) -> Optimization:
        """The optimization that owns what the request generates."""
        return Optimization(self.namespace, self.optimization)

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
        """The scores that an assignment is worth."""
        return (self.preference, *self.objectives)

    @property
    def read_scores(self) -> tuple[tuple[str, ScoreRef], ...]:
        """Every score that is read, once, with the field that names it first.

        Where one field states the format `${app};${device}` of a score and another states none, the
        score has that format in both.
        """
        named: list[tuple[str, ScoreRef]] = [("preference", self.preference)]
        named += [(f"objectives[{i}]", score) for i, score in enumerate(self.objectives)]
        named += [
            (f"limits[{i}].score", limit.score)
            for i, limit in enumerate(self.limits)
            if limit.score is not None
        ]
        first: dict[str, tuple[str, ScoreRef]] = {}
        for field, score in named:
            named_first, kept = first.setdefault(score.key, (field, score))
            if kept.score_dimension_format is None and score.score_dimension_format:
                stated = {"score_dimension_format": score.score_dimension_format}
                first[score.key] = named_first, kept.model_copy(update=stated)
        return tuple(first.values())


class ResetRequest(RequestPart):
    """The body of POST /reset: the namespace whose generated objects are deleted."""

    namespace: Namespace
    optimization: OptimizationName | None = Field(
        None, description="Only what this optimization generated; default: what any generated."
    )
    stop_workloads: bool = Field(
        False,
        description="Stop the workloads too: their Placements stay and select no cluster."
        " Otherwise they go on running, because OCM leaves the ManifestWorks of a Placement"
        " that is gone; seldom it sees the decisions go first, and stops one.",
    )


class RollbackRequest(RequestPart):
    """The body of POST /rollback: which recorded plan is restored.

    Without revision and digest it is the plan before the current one.
    """

    namespace: Namespace
    optimization: OptimizationName | None = Field(
        None,
        description="The optimization whose plan is restored; default: the only one that has"
        " plans.",
    )
    to_revision: int | None = Field(None, ge=1, description="Revision to restore.")
    digest: str | None = Field(None, max_length=64, description="Digest of the plan to restore.")
    workload: Annotated[Name, Field(min_length=1, max_length=253)] | None = Field(
        None,
        description="Undo the move of this workload only, by its name or a part of it. It goes back"
        " to where the restored plan, or else the newest that had it elsewhere, had it.",
    )
    rollout: RolloutStrategy | None = Field(
        None, description="How the changes are made; default: as the restored request says."
    )
    dry_run: bool = Field(False, description="Return the plan and write nothing.")

    @model_validator(mode="after")
    def _one_plan(self) -> Self:
        if self.to_revision is not None and self.digest is not None:
            raise ValueError("name one of toRevision and digest")
        return self
