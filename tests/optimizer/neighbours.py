"""Hubs on which others enforce policies and run workloads on the guide's clusters."""

from collections.abc import Iterable

from dsf.api.names import CLUSTER_CLAIM, PLACEMENT_LABEL, REPLICA_SET_LABEL, WORK_PLACEMENT_LABEL
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Applied
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.build import NOW, guide, obj, request, workload
from tests.optimizer.hubs import hub_of

TEAM = "team-b"


async def hub_of_two_teams(access: AccessTable | None = None) -> EmbeddedHub:
    """The guide's hub, with copies of its policies and workloads in the namespace team-b."""
    hub = await hub_of(access=access)
    await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, TEAM))
    for kind, objects in (
        (kinds.POLICY, guide().policies),
        (kinds.MANIFEST_WORK_REPLICA_SET, guide().workloads),
    ):
        for item in objects:
            await hub.create(kind, in_namespace(item, TEAM))
    return hub


def in_namespace(item: Object, namespace: str) -> Object:
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


def of_team(*args: object, **changed: object) -> OptimizeRequest:
    """The guide's request in the namespace team-b."""
    return request(*args, **{"namespace": TEAM, **changed})


def service(hub: EmbeddedHub) -> Optimizer:
    return Optimizer(hub, now=lambda: NOW)


async def planned(hub: EmbeddedHub, asked: OptimizeRequest) -> Plan:
    plan = await service(hub).plan(asked)
    assert isinstance(plan, Plan), plan
    return plan


async def applied(hub: EmbeddedHub, asked: OptimizeRequest) -> Plan:
    plan = await planned(hub, asked)
    outcome = await service(hub).apply(plan)
    assert isinstance(outcome, Applied), outcome
    assert outcome.failed == ()
    return plan


async def place_by_hand(
    hub: EmbeddedHub, name: str, clusters: Iterable[str], namespace: str = "default"
) -> None:
    """A Placement that a person wrote, and OCM's decision."""
    await hub.create(kinds.PLACEMENT, obj(kinds.PLACEMENT, name, namespace, spec={}))
    decision = obj(
        kinds.PLACEMENT_DECISION, f"{name}-decision-1", namespace, labels={PLACEMENT_LABEL: name}
    )
    await hub.create(kinds.PLACEMENT_DECISION, decision)
    status = {"decisions": [{"clusterName": item, "reason": ""} for item in clusters]}
    await hub.patch(
        kinds.PLACEMENT_DECISION,
        f"{name}-decision-1",
        {"status": status},
        namespace,
        subresource="status",
    )


async def bind_by_hand(
    hub: EmbeddedHub,
    name: str,
    policy_name: str,
    cluster: str,
    namespace: str = "default",
    subject: str = "Policy",
) -> None:
    """A PlacementBinding that a person wrote, with its Placement and OCM's decision."""
    await place_by_hand(hub, name, [cluster], namespace)
    reference = {"name": name, "kind": "Placement", "apiGroup": kinds.PLACEMENT.group}
    bound = {"name": policy_name, "kind": subject, "apiGroup": kinds.POLICY.group}
    binding = obj(kinds.PLACEMENT_BINDING, name, namespace)
    await hub.create(
        kinds.PLACEMENT_BINDING, {**binding, "placementRef": reference, "subjects": [bound]}
    )


async def run_by_hand(
    hub: EmbeddedHub, name: str, cluster: str, amount: object, namespace: str = "default"
) -> None:
    """A workload of nobody's request that runs on a cluster."""
    item = workload(name, name, amount)
    await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, in_namespace(item, namespace))
    await place_by_hand(hub, f"{name}-placement", [cluster], namespace)


async def everything(
    hub: EmbeddedHub, kinds_: Iterable[Kind] = ()
) -> dict[tuple[str, ...], Object]:
    """All objects that a plan could touch, by kind, namespace and name."""
    touched = (kinds.POLICY, kinds.PLACEMENT, kinds.PLACEMENT_BINDING)
    touched += (kinds.MANIFEST_WORK_REPLICA_SET, kinds.PLACEMENT_DECISION)
    return {
        (kind.kind, item["metadata"]["namespace"], item["metadata"]["name"]): item
        for kind in (*touched, *kinds_)
        for item in (await hub.list(kind)).items
    }


async def work_of(
    hub: EmbeddedHub, name: str, cluster: str, placement: str, namespace: str = "default"
) -> None:
    """A ManifestWork as OCM makes it for a ManifestWorkReplicaSet of the guide."""
    asked = {"resource-request-kind": "gpu", "resource-request-amount": "2"}
    own = {REPLICA_SET_LABEL: f"{namespace}.{name}", WORK_PLACEMENT_LABEL: placement}
    labels = {"app": name.removeprefix("mwrs-"), **asked, **own}
    spec = {"workload": {"manifests": []}}
    await hub.create(
        kinds.MANIFEST_WORK, obj(kinds.MANIFEST_WORK, name, cluster, labels=labels, spec=spec)
    )


async def uncovered_by_hand(hub: EmbeddedHub, cluster: str) -> None:
    """A workload that runs by a Placement made by hand, which requires the cluster's claim."""
    await run_by_hand(hub, "alone", cluster, 0)
    required = {"matchExpressions": [{"key": CLUSTER_CLAIM, "operator": "Exists"}]}
    predicates = [{"requiredClusterSelector": {"claimSelector": required}}]
    spec = {"spec": {"predicates": predicates}}
    await hub.patch(kinds.PLACEMENT, "alone-placement", spec, "default")
