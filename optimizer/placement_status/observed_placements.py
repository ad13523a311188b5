"""Reads generated Placements: the clusters that they name, and those that OCM has selected."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dsf.api.conditions import conditions_of, find
from dsf.api.names import PLACEMENT_LABEL, SCHEDULING_DISABLED
from dsf.api.scoring.placement_scores import status_written
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, Requirement, label_selector_of
from dsf.placement import Toleration, read_tolerations
from optimizer.snapshot.object_readers import labels_of, name_of
from optimizer.snapshot.observation import CEL_CLUSTER_NAME


@dataclass(frozen=True, slots=True)
class ObservedPlacement:
    """A Placement: the clusters that it names, with the claims that it requires of each.

    A named cluster need not exist. `number` is numberOfClusters. `selected`: the clusters of its
    PlacementDecisions. `satisfied`: its condition PlacementSatisfied, None before OCM has decided.
    `decided`: when they were written last, if the hub says so. `unscheduled`: an annotation tells
    OCM not to decide it.
    """

    name: str
    claims: Mapping[str, tuple[Requirement, ...]]
    number: int | None
    selected: frozenset[str]
    satisfied: Mapping[str, Any] | None
    tolerations: tuple[Toleration, ...] = ()
    decided: datetime | None = None
    unscheduled: bool = False

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters that it names, in the order of their names."""
        return tuple(sorted(self.claims))


def read_placements(
    placements: Iterable[Object], decisions: Iterable[Object], clusters: Iterable[Object]
) -> dict[str, ObservedPlacement]:
    """Return generated Placements by name."""
    selected, decided = defaultdict[str, set[str]](set), dict[str, datetime]()
    for decision in decisions:
        owner = labels_of(decision).get(PLACEMENT_LABEL, "")
        listed = (decision.get("status") or {}).get("decisions") or ()
        selected[owner].update(str(item["clusterName"]) for item in listed)
        if written := status_written(decision):
            decided[owner] = max(written, decided.get(owner, written))
    labels = _ClusterLabels(clusters)
    return {
        name: ObservedPlacement(
            name,
            _claims(obj.get("spec") or {}, labels),
            (obj.get("spec") or {}).get("numberOfClusters"),
            frozenset(selected.get(name, ())),
            find(conditions_of(obj), "PlacementSatisfied"),
            read_tolerations(obj.get("spec") or {}),
            decided.get(name),
            (obj["metadata"].get("annotations") or {}).get(SCHEDULING_DISABLED) == "true",
        )
        for obj in placements
        for name in [name_of(obj)]
    }


class _ClusterLabels:
    """The labels of all managed clusters, indexed by key and value."""

    def __init__(self, clusters: Iterable[Object]) -> None:
        self._labels = {name_of(item): labels_of(item) for item in clusters}
        self._having = defaultdict[tuple[str, str], list[str]](list)
        for name, labels in self._labels.items():
            for pair in labels.items():
                self._having[pair].append(name)

    def named(self, selector: Mapping[str, Any]) -> Iterator[str]:
        """Yield the clusters that a requiredClusterSelector names, whatever their claims are.

        A value that neither a label nor a name of a cluster is is yielded too: that cluster left.
        """
        parsed = label_selector_of(selector.get("labelSelector") or {})
        expressions = (selector.get("celSelector") or {}).get("celExpressions") or ()
        if not isinstance(parsed, LabelSelector):
            return
        if expressions:
            for name in CEL_CLUSTER_NAME.findall(" ".join(map(str, expressions))):
                if name not in self._labels or parsed.matches(self._labels[name]):
                    yield name
        elif [item.operator for item in parsed.requirements] == ["In"]:
            (one,) = parsed.requirements
            for value in sorted(one.values):
                yield from self._having.get((one.key, value), ())
                if (one.key, value) not in self._having and value not in self._labels:
                    yield value
        else:
            yield from (name for name, own in self._labels.items() if parsed.matches(own))


def _claims(spec: Mapping[str, Any], labels: _ClusterLabels) -> dict[str, tuple[Requirement, ...]]:
    """Return the claims that the predicates require of each cluster; the weakest predicate wins."""
    found: dict[str, tuple[Requirement, ...]] = {}
    for predicate in spec.get("predicates") or ():
        selector = predicate.get("requiredClusterSelector") or {}
        required = label_selector_of(selector.get("claimSelector") or {})
        claims = required.requirements if isinstance(required, LabelSelector) else ()
        for name in labels.named(selector):
            found[name] = min(found.get(name, claims), claims, key=len)
    return found
