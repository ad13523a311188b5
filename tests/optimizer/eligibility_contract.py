"""Plans and what OCM makes of them: for every case, decisions equal the plan.

The world and the cases are those of `tests.dsf.placement.scheduling_contract`. A workload asks for
more replicas than there are clusters, so the plan names every cluster that OCM can select.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.errors import AlreadyExists
from dsf.kube.port import Kube
from optimizer.domain.settings import OptimizerSettings
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.annotations import PREFIX
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from tests.dsf.placement.scheduling_contract import (
    CASES,
    CLUSTERS,
    Case,
    Settle,
    bind,
    create_world,
    outcome,
    report_availability,
)
from tests.optimizer.build import obj

SCORE = "eligibility"
SETTINGS = OptimizerSettings(default_toleration_seconds=0, missing_score=50.0)


@dataclass(frozen=True)
class Planned:
    """The clusters of a plan, what OCM selected for it, and the reasons of its issues."""

    planned: tuple[str, ...]
    selected: tuple[str, ...]
    reasons: frozenset[str]


def plannable() -> list[Case]:
    """The cases that a request can express."""
    fields = {"tolerations", "clusterSets"}
    wrong = {"no-key-needs-exists", "exists-with-value"}
    return [
        case
        for case in CASES
        if set(case.spec) <= fields and not case.annotations and case.name not in wrong
    ]


async def plan_every_case(kube: Kube, settle: Settle) -> dict[str, Planned]:
    """Plan and apply each case in a namespace of its own; return plans and decisions."""
    await create_world(kube)
    await _create_scores(kube)
    await settle(lambda: _has_sets(kube))
    found = dict[str, Planned]()
    for case in plannable():
        namespace = await _create_namespace(kube, case)
        found[case.name] = await plan_and_follow(kube, settle, namespace, case)
    return found


async def lose_clusters(kube: Kube, settle: Settle) -> list[Planned]:
    """Return the plans after a cluster was lost, one was deleted, and the namespace was unbound."""
    case = Case("losses", ())
    namespace = await _create_namespace(kube, case)
    found = [await plan_and_follow(kube, settle, namespace, case)]
    await report_availability(kube, "a1", "False")

    async def is_tainted() -> bool:
        return bool((await kube.get(kinds.MANAGED_CLUSTER, "a1"))["spec"].get("taints"))

    await settle(is_tainted)
    found.append(await plan_and_follow(kube, settle, namespace, case))
    await kube.patch(
        kinds.MANAGED_CLUSTER, "a2", {"metadata": {"finalizers": ["contract.example/wait"]}}
    )
    await kube.delete(kinds.MANAGED_CLUSTER, "a2")
    found.append(await plan_and_follow(kube, settle, namespace, case))
    await kube.delete(kinds.MANAGED_CLUSTER_SET_BINDING, "default", namespace)
    found.append(await plan_and_follow(kube, settle, namespace, case))
    return found


async def _has_sets(kube: Kube) -> bool:
    """Return whether OCM has made its own cluster sets and tainted the clusters that are away."""
    names = {
        item["metadata"]["name"] for item in (await kube.list(kinds.MANAGED_CLUSTER_SET)).items
    }
    away = [await kube.get(kinds.MANAGED_CLUSTER, name) for name in ("u1", "r1")]
    return {"default", "global"} <= names and all(item["spec"].get("taints") for item in away)


async def plan_and_follow(kube: Kube, settle: Settle, namespace: str, case: Case) -> Planned:
    """Plan and apply a case; return the plan and what was selected once OCM has decided."""
    service = Optimizer(kube, SETTINGS, now=utc_now)
    plan = await service.plan(_request(namespace, case))
    assert isinstance(plan, Plan), plan
    applied = await service.apply(plan)
    assert not isinstance(applied, RequestProblem), applied
    assert not applied.failed
    planned = tuple(sorted(place.cluster for place in plan.placements))

    async def decided() -> bool:
        return not planned or (await outcome(kube, namespace, "app"))[1] == planned

    await settle(decided)
    selected = (await outcome(kube, namespace, "app"))[1] if planned else ()
    return Planned(planned, selected, frozenset(issue.reason for issue in plan.issues))


def _request(namespace: str, case: Case) -> OptimizeRequest:
    workload: dict[str, Any] = {"name": "app", "replicas": 20}
    if case.labels:
        workload["affinity"] = ",".join(f"{key}={value}" for key, value in case.labels.items())
    preference = {"addonPlacementScore": SCORE, "scoreDimensionFormat": "${app}"}
    return OptimizeRequest.model_validate(
        {
            "namespace": namespace,
            "clusters": [{"name": cluster.name, "availablePolicies": []} for cluster in CLUSTERS],
            "targetWorkloads": [workload],
            "preference": preference,
            **case.spec,
        }
    )


async def _create_scores(kube: Kube) -> None:
    for cluster in CLUSTERS:
        with suppress(AlreadyExists):
            await kube.create(kinds.NAMESPACE, {"metadata": {"name": cluster.name}})
        score = obj(kinds.ADD_ON_PLACEMENT_SCORE, SCORE, cluster.name)
        await kube.create(kinds.ADD_ON_PLACEMENT_SCORE, score)
        body = {"status": {"scores": [{"name": "app", "value": 50}]}}
        await kube.patch(
            kinds.ADD_ON_PLACEMENT_SCORE, SCORE, body, cluster.name, subresource="status"
        )
        annotations = {f"{PREFIX}allocatable": "cpu=100"}
        await kube.patch(
            kinds.MANAGED_CLUSTER, cluster.name, {"metadata": {"annotations": annotations}}
        )


async def _create_namespace(kube: Kube, case: Case) -> str:
    name = f"plan-{case.name}"
    await kube.create(kinds.NAMESPACE, {"metadata": {"name": name}})
    await bind(kube, name, case.bindings)
    labels = {"app": "app", "resource-request-kind": "cpu", "resource-request-amount": "1"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}
    spec = {
        "placementRefs": [{"name": "app", "rolloutStrategy": {"type": "All"}}],
        "manifestWorkTemplate": {"workload": {"manifests": [config_map]}},
    }
    workload = obj(kinds.MANIFEST_WORK_REPLICA_SET, "app", name, labels=labels, spec=spec)
    await kube.create(kinds.MANIFEST_WORK_REPLICA_SET, workload)
    return name
