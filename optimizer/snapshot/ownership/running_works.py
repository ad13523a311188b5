"""What runs on the clusters: the ManifestWorks that OCM made for ManifestWorkReplicaSets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from dsf.api.names import PLACEMENT_LABEL, WORK_PLACEMENT_LABEL
from dsf.kube.port import Object
from optimizer.domain.fleet import Selector
from optimizer.snapshot.current_decisions import read_current_decisions
from optimizer.snapshot.object_readers import labels_of, replica_set_of
from optimizer.snapshot.observation import Observation


class RunningWork(NamedTuple):
    """A ManifestWork: its cluster, and the Placement that selected it.

    `placement` is empty if OCM is too old to name it. `deleting`: OCM removes it.
    """

    cluster: str
    placement: str
    labels: Mapping[str, str]
    deleting: bool = False

    def as_replica_set(self, name: str) -> Object:
        """Return as much of its ManifestWorkReplicaSet as its labels tell."""
        metadata = {"name": name, "labels": self.labels}
        return {"metadata": metadata, "spec": {"placementRefs": [{"name": self.placement}]}}


def running_works(works: Iterable[Object]) -> dict[str, dict[str, list[RunningWork]]]:
    """Return what runs by namespace and name of the ManifestWorkReplicaSet.

    A ManifestWork that is being deleted counts: its workload runs until the agent has removed it.
    """
    found: dict[str, dict[str, list[RunningWork]]] = {}
    for work in works:
        namespace, name = replica_set_of(work)
        labels = labels_of(work)
        item = RunningWork(
            str(work["metadata"].get("namespace")),
            labels.get(WORK_PLACEMENT_LABEL, ""),
            labels,
            deleting=bool(work["metadata"].get("deletionTimestamp")),
        )
        found.setdefault(namespace, {}).setdefault(name, []).append(item)
    return found


def selected_clusters(decisions: Iterable[Object]) -> Mapping[str, list[str]]:
    """Return the clusters that OCM has selected, by Placement."""
    found = defaultdict[str, list[str]](list)
    for decision in decisions:
        listed = (decision.get("status") or {}).get("decisions") or ()
        owner = labels_of(decision).get(PLACEMENT_LABEL, "")
        found[owner] += [str(item["clusterName"]) for item in listed if item.get("clusterName")]
    return found


def unselected_works(
    observation: Observation, select: Mapping[str, Selector]
) -> Iterator[tuple[tuple[str, str, str], Object]]:
    """Yield the ManifestWorks whose Placement does not select their cluster, or is gone.

    Each with namespace and name of its ManifestWorkReplicaSet, and its cluster.
    """
    selected = set[tuple[str, str, str]]()
    for namespace, seen in (("", observation), *observation.elsewhere.items()):
        named = read_current_decisions(seen, select, None).placements
        for places in (named, selected_clusters(seen.decisions)):
            selected |= {(namespace, item, name) for item, on in places.items() for name in on}
    for work in observation.works or ():
        namespace, name = replica_set_of(work)
        cluster = str(work["metadata"].get("namespace"))
        placement = labels_of(work).get(WORK_PLACEMENT_LABEL, "")
        where = namespace if namespace in observation.elsewhere else ""
        if (where, placement, cluster) not in selected:
            yield (namespace, name, cluster), work


def with_works(
    observation: Observation, earlier: Mapping[tuple[str, str, str], Object]
) -> Observation:
    """Return an observation in which the unselected works of an earlier one are still there."""
    if observation.works is None:
        return observation
    there = {(*replica_set_of(obj), obj["metadata"]["namespace"]) for obj in observation.works}
    gone = tuple(obj for key, obj in earlier.items() if key not in there)
    return replace(observation, works=(*observation.works, *gone))
