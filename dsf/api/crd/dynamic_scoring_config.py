"""DynamicScoringConfig: which scores go to which managed clusters."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dsf.api.crd.structural_schema import AtomicList, ConditionList, rule, rules
from dsf.api.wire_model import WireModel

SOURCE_OVERRIDES = 5000


class Mask(WireModel):
    """A score that is not distributed to a managed cluster."""

    cluster_name: str = Field(
        min_length=1, max_length=253, description="Name of the managed cluster."
    )
    score_name: str = Field(
        min_length=1, max_length=253, description="Name of the score, as in the scoring API."
    )


class SelectorRequirement(WireModel):
    """One condition on labels (`meta/v1` LabelSelectorRequirement)."""

    key: str = Field(description="Name of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="In: the label has one of the values. NotIn: it has none of them, or the"
        " label is missing. Exists, DoesNotExist: whether the label is there."
    )
    values: list[str] | None = Field(
        None, description="The values of In and NotIn; none with the others."
    )


class ClusterSelector(WireModel):
    """A selector of labels (`meta/v1` LabelSelector); without any condition it matches all."""

    match_labels: dict[str, str] | None = Field(
        None, description="Labels with their values, such as region: eu; all of them have to match."
    )
    match_expressions: list[SelectorRequirement] | None = Field(
        None, description="Conditions on labels; all of them have to match."
    )


class SourceOverride(WireModel):
    """Another source host for some managed clusters."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.clusterName) != has(self.clusterSelector)",
                "name either clusterName or clusterSelector",
            )
        )
    )

    cluster_name: str | None = Field(None, description="One managed cluster.")
    cluster_selector: ClusterSelector | None = Field(
        None, description="Managed clusters by their labels."
    )
    score_name: str | None = Field(
        None, description="Only this score; by default every score with a source."
    )
    source_name: str | None = Field(
        None, description="Only the source of this name, of scorers with several; by default each."
    )
    source_host: Annotated[
        str,
        Field(
            pattern=r"^https?://[^\s/?#@]+/?$",
            description="Scheme and host that replace those of the source, such as"
            " http://thanos.observability.svc:9090; its path stays.",
        ),
    ]


_MaskList = Annotated[
    list[Mask], Field(max_length=10_000, json_schema_extra={"x-kubernetes-list-type": "atomic"})
]


class DynamicScoringConfigSpec(WireModel):
    """The distribution of scores to managed clusters."""

    masks: _MaskList | None = Field(None, description="Scores that are not distributed.")
    mask: _MaskList | None = Field(None, description="An older spelling of masks; both count.")

    cluster_selector: ClusterSelector | None = Field(
        None, description="Distribute to managed clusters with these labels."
    )
    cluster_sets: AtomicList[str] | None = Field(
        None,
        description="Distribute to managed clusters of these ManagedClusterSets; global"
        " means all. Where clusterSelector is given too, both must hold.",
    )
    source_overrides: AtomicList[SourceOverride] | None = Field(
        None,
        max_length=SOURCE_OVERRIDES,
        description="Sources per managed cluster; the first match wins.",
    )

    @property
    def all_masks(self) -> tuple[Mask, ...]:
        """The masks of `masks` and of the older `mask`."""
        return (*(self.masks or ()), *(self.mask or ()))


class DynamicScoringConfigStatus(WireModel):
    """The state of the distribution."""

    observed_generation: int | None = Field(
        None, description="Generation that this status describes."
    )
    scorers: int | None = Field(None, description="Number of scorers distributed.")
    clusters: int | None = Field(None, description="Number of managed clusters reached.")
    desired_clusters: int | None = Field(None, description="Number of managed clusters to reach.")
    conditions: ConditionList | None = None
