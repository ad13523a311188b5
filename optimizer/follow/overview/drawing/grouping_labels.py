"""Which labels and ClusterClaims of managed clusters divide a fleet into groups."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from dsf.kube.port import Object
from optimizer.snapshot.object_readers import claims_of, labels_of

MAX_LABELS, MAX_GROUPS = 6, 64
"""Labels by which a fleet is grouped, and the groups that each may make."""

_FIRST = ("region", "zone", "platform", "product", "vendor", "cloud", "clusterset")
"""The last word of labels, or the first of claims, that OCM and clouds set."""


def marks(cluster: Object) -> dict[str, str]:
    """Return the labels of a cluster, and its claims, which win."""
    return {**labels_of(cluster), **claims_of(cluster)}


def grouping_labels(clusters: Iterable[Object]) -> tuple[str, ...]:
    """Return the labels and claims that group clusters, region and zone first.

    They have two values or more, a missing one included. Unless they say where a cluster is or what
    it is, several clusters have the same.
    """
    values, number = defaultdict[str, Counter[str]](Counter), 0
    for cluster in clusters:
        number += 1
        for key, value in marks(cluster).items():
            if len(values[key]) <= MAX_GROUPS:
                values[key][value] += 1
    grouping = [
        (_rank(key), len(found), key)
        for key, found in values.items()
        if len(found) <= MAX_GROUPS and (len(found) > 1 or found.total() < number)
        if max(found.values()) > 1 or _rank(key) < len(_FIRST)
    ]
    return tuple(key for *_, key in sorted(grouping)[:MAX_LABELS])


def _rank(key: str) -> int:
    words = {key, key.rpartition("/")[2], key.partition(".")[0]}
    return next((at for at, word in enumerate(_FIRST) if word in words), len(_FIRST))
