"""Objects of Kueue and OCM on a hub with many worker clusters, as their controllers write them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from dsf.api.names import GROUP
from dsf.api.times import rfc3339
from dsf.hub.dispatch.kueue_configuration import CONFIGURATION_KEY, DISPATCHER
from dsf.hub.dispatch.queue_preferences import PREFERENCES_ANNOTATION
from dsf.kube.port import Object

KUEUE = "kueue.x-k8s.io/v1beta2"
NAMESPACE = "team"
CLUSTER = "cluster.open-cluster-management.io"
CHECK = "multikueue"
SCORE = "carbon"


def workload(name: str, cpu: int, priority: int) -> Object:
    """A Workload of one Pod."""
    container = {
        "name": "main",
        "image": "registry.example/main:1",
        "resources": {"requests": {"cpu": str(cpu)}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"cpu": str(cpu)}},
        "spec": {
            "queueName": "user-queue",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
    }


def reserved(name: str, state: str = "Pending") -> Object:
    """The status of a Workload that has quota on the hub and waits for MultiKueue."""
    check = {"name": CHECK, "state": state, "message": "", "lastTransitionTime": _now()}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "status": {"conditions": [_true("QuotaReserved")], "admissionChecks": [check]},
    }


def admitted(name: str, cluster: str) -> Object:
    """The status of a Workload that a worker cluster has admitted: its nominations are gone."""
    obj = reserved(name, "Ready")
    return {**obj, "status": {**obj["status"], "clusterName": cluster}}


def fleet(
    scores: Mapping[str, int], processors: Mapping[str, int], until: datetime
) -> Iterator[tuple[Object, Object]]:
    """The objects of the hub, and their statuses; scores and inventories are valid until a time."""
    ends = rfc3339(until)
    yield _object("v1", "Namespace", "kueue-system"), {}
    yield _object("v1", "Namespace", NAMESPACE), {}
    data = {CONFIGURATION_KEY: f"multiKueue: {{dispatcherName: {DISPATCHER}}}"}
    config = _object("v1", "ConfigMap", "kueue-manager-config", "kueue-system")
    yield {**config, "data": data}, {}
    queue = _object(KUEUE, "LocalQueue", "user-queue", NAMESPACE)
    queue["metadata"]["annotations"] = {
        PREFERENCES_ANNOTATION: f'[{{"addonPlacementScore": "{SCORE}"}}]'
    }
    yield {**queue, "spec": {"clusterQueue": "cluster-queue"}}, {}
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "fleet"}
    spec: Object = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    active = {"conditions": [_true("Active")]}
    yield {**_object(KUEUE, "AdmissionCheck", CHECK), "spec": spec}, active
    spec = {"clusters": list(scores)}
    yield {**_object(KUEUE, "MultiKueueConfig", "fleet"), "spec": spec}, {}
    for name, score in scores.items():
        yield _object("v1", "Namespace", name), {}
        spec = {"clusterSource": {"kubeConfig": {"location": name, "locationType": "Secret"}}}
        yield {**_object(KUEUE, "MultiKueueCluster", name), "spec": spec}, active
        spec = {"hubAcceptsClient": True}
        joined = {"conditions": [_true("ManagedClusterJoined"), _true("HubAcceptedManagedCluster")]}
        yield {**_object(f"{CLUSTER}/v1", "ManagedCluster", name), "spec": spec}, joined
        status: Object = {"scores": [{"name": "value", "value": score}], "validUntil": ends}
        yield _object(f"{CLUSTER}/v1alpha1", "AddOnPlacementScore", SCORE, name), status
        free = {"cpu": str(processors[name]), "pods": "1000"}
        nodes = {"count": 1, "ready": True, "allocatable": free, "requested": {}}
        status = {"observedTime": _now(), "validUntil": ends, "nodes": [nodes]}
        yield _object(f"{GROUP}/v1alpha1", "NodeInventory", name, name), status


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _true(type_: str) -> Object:
    return {
        "type": type_,
        "status": "True",
        "reason": type_,
        "message": "",
        "lastTransitionTime": _now(),
    }


def _now() -> str:
    return rfc3339(datetime.now(UTC))
