"""Source overrides: the hosts that replace those of scorers on particular managed clusters."""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain
from typing import NamedTuple

from dsf.hub.snapshot.managed_cluster import ManagedCluster
from dsf.kube.selectors import LabelSelector

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
        found: dict[tuple[str | None, str | None], str] = {}
        for override in self._matching(cluster):
            wanted = (override.score, override.source)
            if override.score is None or override.score in scores:
                found.setdefault(wanted, override.host)
            if wanted == (None, None):
                break
        return tuple(SourceHost(score, host, source) for (score, source), host in found.items())

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
        {cluster: tuple(found) for cluster, found in by_cluster.items()},
        {label: tuple(found) for label, found in by_label.items()},
        tuple(others),
    )


def _labels(selector: LabelSelector) -> list[Label]:
    """Return labels; every matching cluster has exactly one of them. Empty if none is required."""
    asked = {each.operator: each for each in reversed(selector.requirements)}
    if found := asked.get("In"):
        return [(found.key, value) for value in found.values]
    if found := asked.get("Exists"):
        return [(found.key, None)]
    return []


def _selects(override: Override, cluster: ManagedCluster) -> bool:
    return override.selector is not None and override.selector.matches(cluster.labels)


def _place(override: Override) -> int:
    return override.position
