"""What a client owns of a status, by managedFields as kube-apiserver 1.34 writes them."""

from typing import Any

from dsf.hub.dispatch.field_ownership import applied_status

QUOTA = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}
OURS = {"type": "example.com/Nominated", "status": "True"}
ADMISSION = {
    "clusterQueue": "cluster-queue",
    "podSetAssignments": [
        {"name": "main", "flavors": {"cpu": "default"}, "count": 1, "delayed": "Ready"},
        {"name": "other", "count": 2},
    ],
}
STATUS = {
    "admission": ADMISSION,
    "conditions": [QUOTA, OURS],
    "nominatedClusterNames": ["east"],
    "schedulingStats": {},
    "tags": ["a", "b"],
    "requeueState": {"count": 1},
}
FIELDS: dict[str, Any] = {
    "f:admission": {
        "f:clusterQueue": {},
        "f:podSetAssignments": {
            'k:{"name":"main"}': {".": {}, "f:name": {}, "f:count": {}, "f:flavors": {"f:cpu": {}}}
        },
    },
    "f:conditions": {
        'k:{"type":"QuotaReserved"}': {".": {}, "f:type": {}, "f:status": {}, "f:reason": {}},
        'k:{"type":"Gone"}': {".": {}, "f:type": {}},
    },
    "f:schedulingStats": {".": {}},
    "f:tags": {'v:"b"': {}},
    "f:gone": {},
}


def workload(operation: str = "Apply", subresource: str = "status") -> dict[str, Any]:
    entry = {
        "manager": "kueue-admission",
        "operation": operation,
        "subresource": subresource,
        "fieldsV1": {"f:metadata": {"f:labels": {}}, "f:status": FIELDS},
    }
    other = {**entry, "manager": "other", "fieldsV1": {"f:status": {"f:requeueState": {}}}}
    return {"metadata": {"managedFields": [other, entry]}, "status": STATUS}


def test_a_client_owns_the_fields_that_it_has_applied() -> None:
    assert applied_status(workload(), "kueue-admission") == {
        "admission": {
            "clusterQueue": "cluster-queue",
            "podSetAssignments": [{"name": "main", "flavors": {"cpu": "default"}, "count": 1}],
        },
        "conditions": [QUOTA],
        "schedulingStats": {},
        "tags": ["b"],
    }
    assert applied_status(workload(), "other") == {"requeueState": {"count": 1}}


def test_what_it_wrote_otherwise_counts_for_nothing() -> None:
    for obj in (workload("Update"), workload(subresource=""), {"metadata": {}}):
        assert applied_status(obj, "kueue-admission") == {}
