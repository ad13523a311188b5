"""What labels say: the supply of a policy, the request of a workload, a cluster's selector."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from dsf.kube.port import Object
from optimizer.fleet import Candidate, Selector, Supply, Workload
from optimizer.results import Gap

SUPPLY_KIND = "resource-supply-kind"
SUPPLY_AMOUNT = "resource-supply-amount"
SUPPLY_DEVICE = "resource-supply-device"
REQUEST_KIND = "resource-request-kind"
REQUEST_AMOUNT = "resource-request-amount"
APP = "app"
NEWER_CLUSTER_LABEL = "name"

_AMOUNT = re.compile(r"[0-9]{1,9}")


def name_of(obj: Object) -> str:
    """Return an object's name."""
    return str(obj["metadata"]["name"])


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return an object's labels."""
    return obj["metadata"].get("labels") or {}


def candidate_of(policy: Object) -> Candidate | Gap:
    """Read the supply labels of a Policy."""
    labels, name = labels_of(policy), name_of(policy)
    amount = _amount(labels.get(SUPPLY_AMOUNT))
    wrong = _wrong(labels, (SUPPLY_KIND, SUPPLY_DEVICE), SUPPLY_AMOUNT)
    if wrong or amount is None:
        return Gap(reason="InvalidSupply", message=f"policy {name}: {wrong}", policy=name)
    return Candidate(name, (Supply(labels[SUPPLY_KIND], labels[SUPPLY_DEVICE], amount),))


def workload_of(replica_set: Object) -> Workload | Gap:
    """Read the request labels and the first placement reference of a ManifestWorkReplicaSet."""
    labels, name = labels_of(replica_set), name_of(replica_set)
    amount = _amount(labels.get(REQUEST_AMOUNT))
    wrong = _wrong(labels, (APP, REQUEST_KIND), REQUEST_AMOUNT)
    if wrong or amount is None:
        return Gap(reason="InvalidRequest", message=f"workload {name}: {wrong}", workload=name)
    placement = _placement(replica_set)
    if not placement:
        message = f"workload {name}: spec.placementRefs[0].name is missing"
        return Gap(reason="NoPlacementRef", message=message, workload=name)
    return Workload(name, labels[APP], labels[REQUEST_KIND], amount, placement, labels)


def selectors(managed_clusters: Iterable[Object], key: str) -> dict[str, Selector]:
    """Return how to select each managed cluster by itself.

    By the label `key`, else by the label `name`, where its value is the cluster's name and no
    other cluster carries it; else by `metadata.name`.
    """
    clusters = list(managed_clusters)
    carried = Counter(pair for cluster in clusters for pair in labels_of(cluster).items())
    return {
        name: Selector(
            name,
            next(
                (
                    k
                    for k in (key, NEWER_CLUSTER_LABEL)
                    if carried[k, name] == 1 and labels_of(cluster).get(k) == name
                ),
                "",
            ),
        )
        for cluster in clusters
        for name in [name_of(cluster)]
    }


def _placement(replica_set: Object) -> str:
    references = (replica_set.get("spec") or {}).get("placementRefs") or [{}]
    return str(references[0].get("name") or "")


def _amount(text: str | None) -> int | None:
    return int(text) if text is not None and _AMOUNT.fullmatch(text) else None


def _wrong(labels: Mapping[str, str], texts: Iterable[str], amount: str) -> str:
    missing = [key for key in (*texts, amount) if not labels.get(key)]
    if missing:
        return f"label {', '.join(missing)} is missing"
    if _amount(labels[amount]) is None:
        return f"label {amount} is {labels[amount]!r}, not a whole number"
    return ""
