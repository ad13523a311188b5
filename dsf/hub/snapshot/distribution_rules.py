"""The DynamicScoringConfig: which managed clusters it chooses, its masks and source overrides.

A source override replaces the hosts of scorers' sources on particular managed clusters.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain
from typing import NamedTuple

from pydantic import ValidationError

from dsf.api.crd.dynamic_scoring_config import (
    ClusterSelector,
    DynamicScoringConfigSpec,
    Mask,
    SourceOverride,
)
from dsf.api.untrusted_text import InvalidInput, quoted
from dsf.hub.snapshot.managed_cluster import ManagedCluster, is_being_deleted
from dsf.hub.snapshot.registered_scorer import validation_message
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, label_selector_of
from dsf.placement import SET_LABEL

Label = tuple[str, str | None]
"""A label's key and value; value None means any value."""


class SourceHost(NamedTuple):
    """A host for the sources of a score; `score` None fits every score, `source` None each source.

    `source` is the name of one of several sources of a scorer.
    """

    score: str | None
    host: str
    source: str | None = None

    def fits(self, score: str, source: str) -> bool:
        """Tell whether it is for a source; `source` is empty for the only one of a scorer."""
        return self.score in (None, score) and self.source in (None, source)


Hosts = tuple[SourceHost, ...]
"""The first that fits wins."""


@dataclass(frozen=True, slots=True)
class Override:
    """The source's host on the managed clusters named or selected.

    `score` None means every score, `source` None each of several sources. `position` is its index
    in `spec.sourceOverrides`.
    """

    position: int
    cluster: str | None
    selector: LabelSelector | None
    score: str | None
    host: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class OverrideIndex:
    """Overrides in the order in which they win, indexed by cluster name and by label.

    An override is found by the cluster that it names or by a label that its selector requires,
    because thousands of overrides times thousands of clusters are too many comparisons. Only the
    `others`, whose selectors require no label, are compared with every cluster.
    """

    ordered: tuple[Override, ...] = ()
    by_cluster: Mapping[str, tuple[Override, ...]] = field(default_factory=dict)
    by_label: Mapping[Label, tuple[Override, ...]] = field(default_factory=dict)
    others: tuple[Override, ...] = ()

    def hosts(self, cluster: ManagedCluster, scores: Container[str]) -> Hosts:
        """Return the hosts that win on a managed cluster, from overrides for one of the scores."""
        winners: dict[tuple[str | None, str | None], str] = {}
        for override in self._matching(cluster):
            aim = (override.score, override.source)
            if override.score is None or override.score in scores:
                winners.setdefault(aim, override.host)
            if aim == (None, None):
                break
        return tuple(SourceHost(score, host, source) for (score, source), host in winners.items())

    def idle(self, clusters: Collection[ManagedCluster]) -> Iterator[Override]:
        """Yield the overrides whose selector matches no managed cluster."""
        met = {each.position for cluster in clusters for each in self._labelled(cluster)}
        met |= {
            e.position for e in self.others if any(_selects(e, cluster) for cluster in clusters)
        }
        return (each for each in self.ordered if each.selector and each.position not in met)

    def _matching(self, cluster: ManagedCluster) -> Iterator[Override]:
        """Yield the overrides that match a managed cluster, in order and lazily."""
        named = self.by_cluster.get(cluster.name, ())
        selected = sorted(self._labelled(cluster), key=_place)
        others = (each for each in self.others if _selects(each, cluster))
        return merge(named, selected, others, key=_place)

    def _labelled(self, cluster: ManagedCluster) -> Iterator[Override]:
        labels = chain(cluster.labels.items(), ((key, None) for key in cluster.labels))
        near = (self.by_label.get(label, ()) for label in labels)
        return (each for each in chain.from_iterable(near) if _selects(each, cluster))


def index_overrides(ordered: Iterable[Override]) -> OverrideIndex:
    """Return an index over overrides in the order in which they win."""
    every = tuple(ordered)
    by_cluster: dict[str, list[Override]] = defaultdict(list)
    by_label: dict[Label, list[Override]] = defaultdict(list)
    others = []
    for each in every:
        labels = _labels(each.selector) if each.selector else ()
        if each.cluster is not None:
            by_cluster[each.cluster].append(each)
        elif labels:
            for label in labels:
                by_label[label].append(each)
        else:
            others.append(each)
    return OverrideIndex(
        every,
        {cluster: tuple(indexed) for cluster, indexed in by_cluster.items()},
        {label: tuple(indexed) for label, indexed in by_label.items()},
        tuple(others),
    )


def _labels(selector: LabelSelector) -> list[Label]:
    """Return labels; every matching cluster has exactly one of them. Empty if none is required."""
    asked = {each.operator: each for each in reversed(selector.requirements)}
    if requirement := asked.get("In"):
        return [(requirement.key, value) for value in requirement.values]
    if requirement := asked.get("Exists"):
        return [(requirement.key, None)]
    return []


def _selects(override: Override, cluster: ManagedCluster) -> bool:
    return override.selector is not None and override.selector.matches(cluster.labels)


def _place(override: Override) -> int:
    return override.position


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
    reasons = [
        _nothing(mask.cluster_name, mask.score_name, clusters, scores) for mask in rules.masks
    ]
    idle = {override.position for override in rules.overrides.idle(clusters.values())}
    for override in rules.overrides.ordered:
        why = _nothing(override.cluster, override.score, clusters, scores)
        if override.position in idle:
            why = "its clusterSelector matches no managed cluster"
        elif not why and override.source is not None and override.source not in source_names:
            why = f"no source is named {quoted(override.source)}"
        reasons.append(why and f"sourceOverrides[{override.position}]: {why}")
    return list(dict.fromkeys(filter(None, reasons)))


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
    masked: dict[str, set[str]] = defaultdict(set)
    for mask in masks:
        masked[mask.cluster_name].add(mask.score_name)
    return {cluster: frozenset(scores) for cluster, scores in masked.items()}


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
