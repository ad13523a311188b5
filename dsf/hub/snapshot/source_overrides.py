"""Where managed clusters have their sources, in place of the hosts that scorers name."""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain

from dsf.hub.snapshot.managed_cluster import ManagedCluster
from dsf.kube.selectors import LabelSelector

Label = tuple[str, str | None]
"""A label's key and value; None stands for any value."""
Hosts = tuple[tuple[str | None, str], ...]
"""Hosts by score name, the first that fits counts; None fits every score."""


@dataclass(frozen=True, slots=True)
class Override:
    """Where the source is on the managed clusters named or selected; `score` None means every."""

    place: int
    cluster: str | None
    selector: LabelSelector | None
    score: str | None
    host: str


@dataclass(frozen=True, slots=True)
class OverrideIndex:
    """Overrides in the order in which they count, and where to look for those of a cluster.

    Each of them is found by the cluster that it names or by a label that its selector asks for,
    since thousands times thousands are too many to compare; only the `others`, which ask for no
    label to be there, are always tried.
    """

    ordered: tuple[Override, ...] = ()
    by_cluster: Mapping[str, tuple[Override, ...]] = field(default_factory=dict)
    by_label: Mapping[Label, tuple[Override, ...]] = field(default_factory=dict)
    others: tuple[Override, ...] = ()

    def hosts(self, cluster: ManagedCluster, scores: Container[str]) -> Hosts:
        """Return what counts on a managed cluster, of the overrides that mean one of the scores."""
        found: dict[str | None, str] = {}
        for override in self._matching(cluster):
            if override.score is None or override.score in scores:
                found.setdefault(override.score, override.host)
            if override.score is None:
                break
        return tuple(found.items())

    def idle(self, clusters: Collection[ManagedCluster]) -> Iterator[Override]:
        """Yield the overrides whose selector matches no managed cluster."""
        met = {each.place for cluster in clusters for each in self._labelled(cluster)}
        met |= {e.place for e in self.others if any(_selects(e, cluster) for cluster in clusters)}
        return (each for each in self.ordered if each.selector and each.place not in met)

    def _matching(self, cluster: ManagedCluster) -> Iterator[Override]:
        """Yield what matches a managed cluster in order, and try no more than is asked for."""
        named = self.by_cluster.get(cluster.name, ())
        selected = sorted(self._labelled(cluster), key=_place)
        others = (each for each in self.others if _selects(each, cluster))
        return merge(named, selected, others, key=_place)

    def _labelled(self, cluster: ManagedCluster) -> Iterator[Override]:
        labels = chain(cluster.labels.items(), ((key, None) for key in cluster.labels))
        near = (self.by_label.get(label, ()) for label in labels)
        return (each for each in chain.from_iterable(near) if _selects(each, cluster))


def index_overrides(ordered: Iterable[Override]) -> OverrideIndex:
    """Return overrides ready to be looked up."""
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
    """Return labels of which a matching cluster has exactly one; none where it asks for none."""
    asked = {each.operator: each for each in reversed(selector.requirements)}
    if found := asked.get("In"):
        return [(found.key, value) for value in found.values]
    if found := asked.get("Exists"):
        return [(found.key, None)]
    return []


def _selects(override: Override, cluster: ManagedCluster) -> bool:
    return override.selector is not None and override.selector.matches(cluster.labels)


def _place(override: Override) -> int:
    return override.place
