"""The DynamicScoringConfig: which managed clusters it chooses, its masks and source overrides."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from dsf.api.crd.dynamic_scoring_config import (
    ClusterSelector,
    DynamicScoringConfigSpec,
    Mask,
    SourceOverride,
)
from dsf.api.invalid_input import InvalidInput
from dsf.api.untrusted_text import quoted
from dsf.hub.snapshot.managed_cluster import ManagedCluster, is_being_deleted
from dsf.hub.snapshot.registered_scorer import validation_message
from dsf.hub.snapshot.source_overrides import Override, OverrideIndex, index_overrides
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, label_selector_of
from dsf.placement.cluster_sets import SET_LABEL

GLOBAL_SET = "global"
"""The ManagedClusterSet that has every managed cluster."""


@dataclass(frozen=True, slots=True)
class DistributionRules:
    """The spec of a DynamicScoringConfig, indexed by managed cluster."""

    masks: tuple[Mask, ...] = ()
    masked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    selector: LabelSelector | None = None
    sets: frozenset[str] | None = None
    overrides: OverrideIndex = field(default_factory=OverrideIndex)

    def chooses(self, cluster: ManagedCluster) -> bool:
        """Tell whether the selector and the cluster sets choose a managed cluster."""
        if self.selector is not None and not self.selector.matches(cluster.labels):
            return False
        if self.sets is None or GLOBAL_SET in self.sets:
            return True
        return cluster.labels.get(SET_LABEL) in self.sets


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """The DynamicScoringConfig with its rules, or why they can't be used."""

    obj: Object
    rules: DistributionRules | InvalidInput

    @property
    def being_deleted(self) -> bool:
        """Whether it is being deleted."""
        return is_being_deleted(self.obj)


def read_scoring_config(obj: Object) -> ScoringConfig:
    """Read a DynamicScoringConfig object."""
    return ScoringConfig(obj, _rules(obj))


def unmatched(
    rules: DistributionRules,
    clusters: Mapping[str, ManagedCluster],
    score_names: Iterable[str],
    source_names: Container[str],
) -> list[str]:
    """Return a message for each mask and override that matches nothing: which one, and why.

    `source_names` are those of the sources of scorers with several.
    """
    scores = set(score_names)
    found = [_nothing(mask.cluster_name, mask.score_name, clusters, scores) for mask in rules.masks]
    idle = {override.position for override in rules.overrides.idle(clusters.values())}
    for override in rules.overrides.ordered:
        why = _nothing(override.cluster, override.score, clusters, scores)
        if override.position in idle:
            why = "its clusterSelector matches no managed cluster"
        elif not why and override.source is not None and override.source not in source_names:
            why = f"no source is named {quoted(override.source)}"
        found.append(why and f"sourceOverrides[{override.position}]: {why}")
    return list(dict.fromkeys(filter(None, found)))


def _nothing(
    cluster: str | None, score: str | None, clusters: Mapping[str, ManagedCluster], scores: set[str]
) -> str:
    if cluster is not None and cluster not in clusters:
        return f"no managed cluster is named {quoted(cluster)}"
    if score is not None and score not in scores:
        return f"no score is named {quoted(score)}"
    return ""


def _rules(obj: Object) -> DistributionRules | InvalidInput:
    try:
        spec = DynamicScoringConfigSpec.model_validate(obj.get("spec") or {})
    except ValidationError as error:
        return InvalidInput("InvalidSpec", f"spec: {validation_message(error)}")
    selector = _selector(spec.cluster_selector, "spec.clusterSelector")
    if isinstance(selector, InvalidInput):
        return selector
    overrides = []
    for place, override in enumerate(spec.source_overrides or ()):
        read = _override(place, override)
        if isinstance(read, InvalidInput):
            return read
        overrides.append(read)
    return DistributionRules(
        masks=spec.all_masks,
        masked=_masked(spec.all_masks),
        selector=selector,
        sets=None if spec.cluster_sets is None else frozenset(spec.cluster_sets),
        overrides=index_overrides(overrides),
    )


def _masked(masks: Iterable[Mask]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for mask in masks:
        found[mask.cluster_name].add(mask.score_name)
    return {cluster: frozenset(scores) for cluster, scores in found.items()}


def _override(place: int, override: SourceOverride) -> Override | InvalidInput:
    where = f"spec.sourceOverrides[{place}]"
    if (override.cluster_name is None) == (override.cluster_selector is None):
        return InvalidInput("InvalidSpec", f"{where}: name either clusterName or clusterSelector")
    selector = _selector(override.cluster_selector, f"{where}.clusterSelector")
    if isinstance(selector, InvalidInput):
        return selector
    host = override.source_host.rstrip("/")
    named = override.cluster_name, selector, override.score_name
    return Override(place, *named, host, override.source_name)


def _selector(written: ClusterSelector | None, where: str) -> LabelSelector | InvalidInput | None:
    if written is None:
        return None
    selector = label_selector_of(written.model_dump(by_alias=True, exclude_none=True))
    if isinstance(selector, InvalidInput):
        return InvalidInput("InvalidSpec", f"{where}: {selector.message}")
    return selector
