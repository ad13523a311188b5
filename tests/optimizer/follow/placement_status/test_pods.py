"""Landed claims Pods only where status feedback or a NodeInventory tells of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dsf.api.times import rfc3339
from dsf.kube.port import Object
from optimizer.follow.overview.findings.workload_findings import status_findings
from optimizer.follow.placement_status.comparison import placement_status
from optimizer.follow.placement_status.landing_report import landing_conditions, landing_events
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import WorkloadLanding
from tests.dsf.sim.builders import NOW
from tests.optimizer.follow.placement_status.test_landed import guide_landed, merged
from tests.optimizer.inventories import NO_NODE, OLDER, counted, inventory

SINCE = NOW - timedelta(minutes=9)
WELL_KNOWN = ({"type": "WellKnownStatus"},)
READY, BOTH = {"ReadyReplicas": 2}, {"ReadyReplicas": 2, "Replicas": 2}


def manifest(kind: str, **spec: Any) -> Object:
    return {"kind": kind, "metadata": {"name": "app01", "namespace": "default"}, "spec": spec}


def by_paths(*names: str) -> tuple[Object, ...]:
    return ({"type": "JSONPaths", "jsonPaths": [{"name": name} for name in names]},)


def fed_back(manifest: Object, rules: tuple[Object, ...], values: dict[str, Any]) -> Object:
    """What OCM's work agent writes of one manifest."""
    resource = f"{manifest['kind'].lower()}s"
    meta = {"kind": manifest["kind"], "resource": resource, **manifest["metadata"]}
    kinds_of = {int: "integer", str: "string"}
    listed = [
        {"name": name, "fieldValue": {kinds_of[type(value)]: value}}
        for name, value in values.items()
    ]
    reason = "StatusFeedbackSynced" if rules else "NoStatusFeedbackSynced"
    synced = {"type": "StatusFeedbackSynced", "status": "True", "reason": reason}
    since = {**synced, "lastTransitionTime": rfc3339(SINCE)}
    return {"resourceMeta": meta, "conditions": [since], "statusFeedback": {"values": listed}}


def observed(
    manifests: list[Object],
    rules: tuple[Object, ...] = (),
    values: dict[str, Any] | None = None,
    inventories: tuple[Object, ...] | None = (),
) -> Observation:
    """The guide's landed workload on worker01, with these manifests."""
    named = {"resource": f"{manifests[0]['kind'].lower()}s", "name": "app*", "namespace": "*"}
    config = {"resourceIdentifier": named, "feedbackRules": list(rules)}
    template = {"workload": {"manifests": manifests}, "manifestConfigs": [config]}
    status = {"resourceStatus": {"manifests": [fed_back(manifests[0], rules, values or {})]}}
    landed = guide_landed()
    return replace(
        landed,
        workloads=tuple(
            merged(spec={"manifestWorkTemplate": template})(obj)
            if obj["metadata"]["name"] == "mwrs-app01"
            else obj
            for obj in landed.workloads
        ),
        works=tuple(
            merged(status=status)(obj) if obj["metadata"]["namespace"] == "worker01" else obj
            for obj in landed.works or ()
        ),
        inventories=inventories,
    )


def on_worker01(observation: Observation) -> WorkloadLanding:
    found = placement_status(observation, "default").workloads
    return next(item for item in found if item.cluster == "worker01")


TWO = manifest("Deployment", replicas=2)
UNKNOWN = "its ManifestWork is applied and available; nobody reports its Pods"
ALL = "its ManifestWork is applied and available; 2 of 2 Pods ready"


@pytest.mark.parametrize(
    ("observation", "reason", "message"),
    [
        (observed([TWO]), "", UNKNOWN),
        (observed([TWO], inventories=None), "", UNKNOWN),
        (observed([TWO], WELL_KNOWN, BOTH), "", ALL),
        (observed([TWO], WELL_KNOWN, {"Replicas": 2}), "PodsNotReady", "0 of 2 Pods ready"),
        # A quota keeps the ReplicaSet from making any.
        (observed([TWO], WELL_KNOWN, {}), "PodsNotReady", "0 of 2 Pods ready"),
        # Scaled up, and not reported since.
        (
            observed([manifest("Deployment", replicas=4)], WELL_KNOWN, BOTH),
            "PodsNotReady",
            "2 of 4 Pods ready",
        ),
        (observed([manifest("Deployment", replicas=0)], WELL_KNOWN, {}), "", "0 of 0 Pods ready"),
        (observed([manifest("Deployment")], WELL_KNOWN, {}), "PodsNotReady", "0 of 1 Pod ready"),
        # Rules about something else tell nothing of Pods.
        (observed([TWO], by_paths("Image"), {"Image": "a"}), "", UNKNOWN),
        (observed([manifest("StatefulSet", replicas=2)], WELL_KNOWN, {}), "", UNKNOWN),
        (
            observed([manifest("StatefulSet", replicas=2)], by_paths("ReadyReplicas"), READY),
            "",
            ALL,
        ),
        (
            observed(
                [manifest("LeaderWorkerSet", size=4)],
                by_paths("ReadyReplicas", "Replicas"),
                {"ReadyReplicas": 1, "Replicas": 3},
            ),
            "PodsNotReady",
            "1 of 3 Pods ready",
        ),
        (
            observed(
                [manifest("DaemonSet")], WELL_KNOWN, {"NumberReady": 4, "DesiredNumberScheduled": 5}
            ),
            "PodsNotReady",
            "4 of 5 Pods ready",
        ),
        (
            observed([manifest("Pod")], WELL_KNOWN, {"PodPhase": "Pending"}),
            "PodsNotReady",
            "0 of 1 Pod ready, 1 pending",
        ),
        (
            observed([manifest("Pod")], WELL_KNOWN, {"PodPhase": "Running", "PodReady": "True"}),
            "",
            "1 of 1 Pod ready",
        ),
        (observed([manifest("Pod")], WELL_KNOWN, {"PodPhase": "Succeeded"}), "", UNKNOWN),
        (observed([manifest("Job")], WELL_KNOWN, {"JobComplete": "True"}), "", UNKNOWN),
        (observed([manifest("ConfigMap")]), "", "applied and available"),
        # The inventory, without any rule.
        (observed([TWO], inventories=(inventory(counted(2, 2)),)), "", ALL),
        (
            observed([TWO], inventories=(inventory(counted(1, 1, 1)),)),
            "PodsPending",
            f'1 of 2 Pods ready, 1 pending: Unschedulable, "{NO_NODE}"',
        ),
        (
            observed([TWO], inventories=(inventory(counted(0, 0, 2, "ContainerCreating")),)),
            "PodsNotReady",
            f'0 of 2 Pods ready, 2 pending: ContainerCreating, "{NO_NODE}"',
        ),
        (observed([TWO], inventories=(inventory(),)), "PodsNotReady", "0 of 2 Pods ready"),
        (
            observed([TWO], inventories=(inventory(counted(2, 1)),)),
            "PodsNotReady",
            "1 of 2 Pods ready",
        ),
        # Its Pods have a controller that another one made, so the agent takes them for nobody's.
        (
            observed([manifest("LeaderWorkerSet", replicas=3)], inventories=(inventory(),)),
            "",
            "applied and available",
        ),
        (observed([manifest("Job")], inventories=(inventory(),)), "", UNKNOWN),
        (
            observed([manifest("Job")], inventories=(inventory(counted(3, 1, 2)),)),
            "PodsPending",
            f'1 of 5 Pods ready, 2 pending: Unschedulable, "{NO_NODE}"',
        ),
        # It does not know whose all Pods are, or nothing is heard of the agent any more.
        (
            observed([TWO], inventories=(merged(status={"conditions": []})(inventory()),)),
            "",
            UNKNOWN,
        ),
        (observed([TWO], inventories=(inventory(counted(0, 0, 2), until=NOW),)), "", UNKNOWN),
        # Where both tell, more missing Pods count, whoever misses them.
        (
            observed([TWO], WELL_KNOWN, BOTH, (inventory(counted(0, 0, 2)),)),
            "PodsPending",
            f'0 of 2 Pods ready, 2 pending: Unschedulable, "{NO_NODE}"',
        ),
        (
            observed([TWO], WELL_KNOWN, {"Replicas": 2}, (inventory(counted(2, 2)),)),
            "PodsNotReady",
            "0 of 2 Pods ready",
        ),
        # Absurd counts of a hostile agent.
        (
            observed([TWO], inventories=(inventory(counted(-3, -(10**30), 10**30)),)),
            "PodsPending",
            f'0 of 2 Pods ready, 1000000 pending: Unschedulable, "{NO_NODE}"',
        ),
    ],
)
def test_a_workload_has_landed_once_its_pods_are_ready_as_far_as_anybody_tells(
    observation: Observation, reason: str, message: str
) -> None:
    found = on_worker01(observation)
    state = "WaitingForPods" if reason else "Landed"
    assert (found.state, found.reason) == (state, reason or "ResourcesAvailable")
    assert found.message.endswith(message)
    assert (found.pods is None) == (message in (UNKNOWN, "applied and available"))


def test_who_may_list_no_works_still_hears_of_pending_pods() -> None:
    summary = {"total": 1, "applied": 1, "available": 1}
    seen = observed([TWO], inventories=(inventory(counted(1, 1, 1)),))
    told = merged(status={"summary": summary})
    seen = replace(seen, works=None, workloads=tuple(map(told, seen.workloads)))
    assert on_worker01(seen).reason == "PodsPending"


def test_pending_pods_are_a_finding_a_condition_and_an_event() -> None:
    hostile = {**counted(1, 1, 1), "pendingMessage": 'no room"\nLanded: all is well'}
    status = placement_status(observed([TWO], inventories=(inventory(hostile),)), "default")
    said = '1 of 2 Pods ready, 1 pending: Unschedulable, "no room\\" Landed: all is well"'
    (finding,) = status_findings(status)
    assert (finding.reason, finding.severity, finding.since) == ("PodsPending", "error", OLDER)
    assert finding.message == f"mwrs-app01 on worker01: WaitingForPods: {said}"
    landed, _ = landing_conditions(status)
    assert (landed.status, landed.reason) == ("False", "WaitingForPods")
    assert landed.message.endswith(f"first: mwrs-app01 on worker01: PodsPending: {said}")
    event = next(iter(landing_events(None, status)))
    assert event[1:3] == ("Warning", "WaitingForPods")
