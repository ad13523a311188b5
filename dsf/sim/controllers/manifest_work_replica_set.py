"""Simulated ManifestWorkReplicaSet controller: one ManifestWork for each selected cluster.

Source: https://open-cluster-management.io/docs/concepts/work-distribution/manifestworkreplicaset/
"""

from collections.abc import Iterable

from dsf.api.conditions import Condition, is_true, merged
from dsf.api.names import REPLICA_SET_LABEL, WORK_PLACEMENT_LABEL
from dsf.kube.changes import Change
from dsf.kube.kinds import MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET
from dsf.kube.port import Object
from dsf.sim.controllers.musthave import set_status
from dsf.sim.controllers.placement import DecidedClusters


def works(replica_sets: Iterable[Object], decisions: DecidedClusters) -> list[Object]:
    """Return the ManifestWorks of the replica sets whose Placements all exist."""
    return [
        _work(replica_set, cluster, placement)
        for replica_set in replica_sets
        if not replica_set["metadata"].get("deletionTimestamp")
        and not _waiting(replica_set, decisions)
        for cluster, placement in _clusters(replica_set, decisions).items()
    ]


def governed(
    observed: Iterable[Object], replica_sets: Iterable[Object], decisions: DecidedClusters
) -> list[Object]:
    """Return the ManifestWorks that may change or be deleted now.

    As in OCM, the ManifestWorks of a replica set stay as they are while one of its Placements is
    missing.
    """
    waiting = {_owner(item) for item in replica_sets if _waiting(item, decisions)}
    return [work for work in observed if _owner_of(work) not in waiting]


def report(
    replica_set: Object, decisions: DecidedClusters, observed: Iterable[Object], *, now: str
) -> list[Change]:
    """Return the status write that counts the ManifestWorks: total, applied and available."""
    own = [work for work in observed if _owner_of(work) == _owner(replica_set)]
    applied = sum(is_true(work, "Applied") for work in own)
    before = replica_set.get("status") or {}
    status = {
        "conditions": merged(
            before.get("conditions") or [],
            [_verified(replica_set, decisions), _applied(applied, len(own))],
            now=now,
        ),
        "summary": {
            "total": len(own),
            "applied": applied,
            "available": sum(is_true(work, "Available") for work in own),
        },
    }
    return set_status(MANIFEST_WORK_REPLICA_SET, replica_set, status)


def _verified(replica_set: Object, decisions: DecidedClusters) -> Condition:
    if _waiting(replica_set, decisions):
        return Condition("PlacementVerified", "False", "PlacementDecisionNotFound")
    if not _clusters(replica_set, decisions):
        return Condition("PlacementVerified", "False", "PlacementDecisionEmpty")
    return Condition("PlacementVerified", "True", "AsExpected")


def _applied(applied: int, total: int) -> Condition:
    if applied < total:
        return Condition("ManifestworkApplied", "False", "Processing")
    return Condition("ManifestworkApplied", "True", "AsExpected")


def _waiting(replica_set: Object, decisions: DecidedClusters) -> bool:
    return any(reference not in decisions for reference in _references(replica_set))


def _owner_of(work: Object) -> str:
    return str(work["metadata"]["labels"][REPLICA_SET_LABEL])


def _owner(replica_set: Object) -> str:
    metadata = replica_set["metadata"]
    return f"{metadata['namespace']}.{metadata['name']}"


def _references(replica_set: Object) -> list[tuple[str, str]]:
    namespace = replica_set["metadata"]["namespace"]
    listed = replica_set["spec"].get("placementRefs") or []
    return [(namespace, reference["name"]) for reference in listed]


def _clusters(replica_set: Object, decisions: DecidedClusters) -> dict[str, str]:
    """Return the selected clusters, each with the Placement that selected it."""
    found = dict[str, str]()
    for namespace, placement in _references(replica_set):
        for cluster in decisions.get((namespace, placement), ()):
            found.setdefault(cluster, placement)
    return dict(sorted(found.items()))


def _work(replica_set: Object, cluster: str, placement: str) -> Object:
    metadata = replica_set["metadata"]
    own = {REPLICA_SET_LABEL: _owner(replica_set), WORK_PLACEMENT_LABEL: placement}
    return MANIFEST_WORK.object(
        metadata={
            "name": metadata["name"],
            "namespace": cluster,
            "labels": {**(metadata.get("labels") or {}), **own},
        },
        spec=replica_set["spec"]["manifestWorkTemplate"],
    )
