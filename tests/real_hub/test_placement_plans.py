"""Plans on record on a real hub: columns, a spec that can't be edited, and a rollback on OCM."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from dsf.kube.client.connect import connect
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.eventually import until

from .harness.api import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from .harness.api import Object
    from .harness.hub import Hub

CLUSTERS = ("east", "west")
MANAGED = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
PLACEMENT = ("cluster.open-cluster-management.io/v1beta1", "Placement")
PLAN = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "PlacementPlan")
WORKLOAD = ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
WORK = ("work.open-cluster-management.io/v1", "ManifestWork")
MANIFEST = """
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{app: {name}, resource-request-kind: gpu, resource-request-amount: "1"}}
spec:
  placementRefs: [{{name: {name}, rolloutStrategy: {{type: All}}}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}
"""

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


@pytest.fixture
def place(hub: Hub, bound_namespace: str) -> Iterator[str]:
    """A namespace with a workload; both clusters have a score for it."""
    hub.apply(MANIFEST.format(name="app", namespace=bound_namespace))
    for cluster in CLUSTERS:
        metadata = {"name": "worth", "namespace": cluster}
        hub.apply({"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata})
    yield bound_namespace
    for cluster in CLUSTERS:
        hub.api.delete(*SCORE, "worth", cluster)


def prefer(hub: Hub, best: str) -> None:
    for cluster in CLUSTERS:
        value = 80 if cluster == best else 20
        scores = [{"name": f"{app};all", "value": value} for app in ("app", "another")]
        hub.api.patch(
            *SCORE, "worth", {"status": {"scores": scores}}, cluster, subresource="status"
        )


def optimize(namespace: str, *workloads: str) -> OptimizeRequest:
    return OptimizeRequest.model_validate(
        {
            "namespace": namespace,
            "clusters": [{"name": name, "allocatable": "gpu/all=2"} for name in CLUSTERS],
            "targetWorkloads": [{"name": name} for name in workloads or ("app",)],
            "preference": {"addonPlacementScore": "worth"},
        }
    )


def apply(
    hub: Hub, planned: Callable[[Optimizer], Coroutine[None, None, Plan | RequestProblem]]
) -> Plan | RequestProblem:
    """Make a plan and apply it, unless it is refused."""

    async def made() -> Plan | RequestProblem:
        async with connect(hub.admin_kubeconfig) as kube:
            service = Optimizer(kube, now=lambda: datetime.now(UTC))
            plan = await planned(service)
            if isinstance(plan, Plan):
                applied = await service.apply(plan)
                assert isinstance(applied, Applied), applied
                assert (applied.failed, applied.issues) == ((), ())
            return plan

    return asyncio.run(made())


def decided(hub: Hub, namespace: str) -> set[str]:
    labels = "cluster.open-cluster-management.io/placement=app"
    return {
        entry["clusterName"]
        for decision in hub.api.list(*DECISION, namespace, labels=labels)
        for entry in decision.get("status", {}).get("decisions", [])
    }


def rows(hub: Hub, namespace: str) -> list[tuple[object, ...]]:
    """What kubectl prints, without the age and what only -o wide shows."""
    table: Object = hub.api.request("GET", hub.api.path(*PLAN, namespace), accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]][:7] == [
        "Name",
        "Optimization",
        "Revision",
        "Phase",
        "Objective",
        "Gap",
        "Requested by",
    ]
    return [tuple(row["cells"][:6]) for row in table["rows"]]


def test_a_rollback_gives_ocm_the_first_decision_again(hub: Hub, place: str) -> None:
    prefer(hub, "east")
    first = apply(hub, lambda service: service.plan(optimize(place)))
    assert isinstance(first, Plan)
    until("east to be decided", lambda: decided(hub, place) == {"east"})
    annotations = hub.api.get(*PLACEMENT, "app", place)["metadata"]["annotations"]
    assert annotations["dynamic-scoring.open-cluster-management.io/plan-digest"] == first.digest

    prefer(hub, "west")
    apply(hub, lambda service: service.plan(optimize(place)))
    until("west to be decided", lambda: decided(hub, place) == {"west"})

    back = apply(hub, lambda service: service.plan_rollback(RollbackRequest(namespace=place)))
    assert isinstance(back, Plan)
    assert back.manifests == first.manifests
    until("east to be decided again", lambda: decided(hub, place) == {"east"})
    assert rows(hub, place) == [
        ("default-1", "default", 1, "Superseded", 80, 0),
        ("default-2", "default", 2, "RolledBack", 80, 0),
        ("default-3", "default", 3, "Applied", 20, None),
    ]


def test_a_workload_that_a_plan_takes_away_stops(hub: Hub, place: str) -> None:
    """Decision 0029: OCM leaves the ManifestWorks of a Placement that is deleted."""

    def works(name: str) -> list[Object]:
        labels = f"work.open-cluster-management.io/manifestworkreplicaset={place}.{name}"
        return [
            work for cluster in CLUSTERS for work in hub.api.list(*WORK, cluster, labels=labels)
        ]

    hub.apply(MANIFEST.format(name="another", namespace=place))
    prefer(hub, "east")
    apply(hub, lambda service: service.plan(optimize(place, "app", "another")))
    until("both to have a ManifestWork", lambda: works("app") and works("another"))

    without = apply(hub, lambda service: service.plan(optimize(place, "another")))
    assert isinstance(without, Plan)
    until("the ManifestWork to be deleted", lambda: not works("app"))
    assert hub.api.get(*PLACEMENT, "app", place)["spec"]["numberOfClusters"] == 0
    assert works("another")


def test_a_record_can_not_be_edited_and_an_edited_copy_is_refused(hub: Hub, place: str) -> None:
    for best in CLUSTERS:
        prefer(hub, best)
        apply(hub, lambda service: service.plan(optimize(place)))
    with pytest.raises(ApiError) as refused:
        hub.api.patch(*PLAN, "default-1", {"spec": {"objective": 99}}, place)
    assert "its spec can't be changed" in refused.value.message

    kept = hub.api.get(*PLAN, "default-1", place)
    hub.api.delete(*PLAN, "default-1", place)
    edited = {**kept["spec"], "requestedBy": "mallory"}
    metadata = {key: kept["metadata"][key] for key in ("name", "namespace", "labels")}
    hub.api.create({**kept, "metadata": metadata, "spec": edited})
    asked = RollbackRequest(namespace=place, to_revision=1)
    answer = apply(hub, lambda service: service.plan_rollback(asked))
    assert isinstance(answer, RequestProblem)
    assert (answer.status, answer.reason) == (409, "UnusableRecord")


def test_a_taint_since_then_refuses_the_rollback(hub: Hub, place: str) -> None:
    for best in CLUSTERS:
        prefer(hub, best)
        apply(hub, lambda service: service.plan(optimize(place)))
    before = hub.api.get(*PLACEMENT, "app", place)
    taint = {"key": "broken", "effect": "NoSelect"}
    hub.api.patch(*MANAGED, "east", {"spec": {"taints": [taint]}})
    try:
        asked = RollbackRequest(namespace=place)
        answer = apply(hub, lambda service: service.plan_rollback(asked))
    finally:
        hub.api.patch(*MANAGED, "east", {"spec": {"taints": None}})
    assert isinstance(answer, RequestProblem)
    assert (answer.status, answer.reason) == (409, "RollbackRefused")
    assert "broken" in answer.detail
    assert hub.api.get(*PLACEMENT, "app", place)["spec"] == before["spec"]
