"""What conditions, Events and drift say of a plan in force, after edits by hand on a real hub."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest

from dsf.api.conditions import conditions_of, find, is_true
from dsf.api.names import REPLICA_SET_LABEL
from dsf.kube import kinds
from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from dsf.kube.errors import NotFound
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.object_readers import replica_set_of
from tests.eventually import eventually

from .test_rollout import applied, configure, manifests, place, request, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dsf.kube.kinds import Kind
    from dsf.kube.port import Kube, Object

    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

__all__ = ["place"]

SCORE = "rollout-performance"
CHOSEN = "policy-enable-mig-3g-east"
OTHER = "policy-disable-mig-east"
GENERATED = "dynamic-scoring-framework-mcp/generated=true"

pytestmark = pytest.mark.usefixtures("policies", "placement_plans")


class Fleet(NamedTuple):
    """A namespace in which the guide's plan for performance has landed."""

    hub: Kube
    east: Kube
    namespace: str
    service: Optimizer

    async def patch(self, kind: Kind, name: str, body: Object) -> None:
        await self.hub.patch(kind, name, body, self.namespace if kind.namespaced else None)

    async def generated(self, kind: Kind, part: str = "east") -> Object:
        """The generated object of a policy on east."""
        listed = (await self.hub.list(kind, self.namespace, labels=GENERATED)).items
        (found,) = [item for item in listed if part in item["metadata"]["name"]]
        return found

    async def edit(self, kind: Kind, body: Object) -> None:
        """Change the generated object of a policy on east."""
        await self.patch(kind, (await self.generated(kind))["metadata"]["name"], body)

    async def delete(self, kind: Kind, name: str) -> None:
        await self.hub.delete(kind, name, self.namespace)

    async def restore(self) -> None:
        """Put back what people wrote, and apply the plan again."""
        for obj in manifests(self.namespace):
            kind = kinds.POLICY if obj["kind"] == "Policy" else kinds.MANIFEST_WORK_REPLICA_SET
            if obj["kind"] in (kinds.POLICY.kind, kinds.MANIFEST_WORK_REPLICA_SET.kind):
                await put(self.hub, kind, obj)
        await applied(self.service, request(self.namespace, SCORE))


async def put(hub: Kube, kind: Kind, obj: Object) -> None:
    """Make an object equal in labels and spec."""
    metadata = obj["metadata"]
    try:
        there = await hub.get(kind, metadata["name"], metadata["namespace"])
    except NotFound:
        await hub.create(kind, obj)
        return
    labels = dict.fromkeys(there["metadata"].get("labels") or {}) | metadata.get("labels", {})
    version = there["metadata"]["resourceVersion"]
    merged = {**there, "spec": obj["spec"]}
    merged["metadata"] = {**there["metadata"], "resourceVersion": version}
    merged["metadata"]["labels"] = {k: v for k, v in labels.items() if v is not None}
    await hub.update(kind, merged)


class Edit(NamedTuple):
    """An edit, the condition that tells of it with its reason, and what undoes it beside a plan."""

    do: Callable[[Fleet], Awaitable[None]]
    condition: str
    reason: str
    undo: Callable[[Fleet], Awaitable[None]] | None = None


def placement(body: Object) -> Callable[[Fleet], Awaitable[None]]:
    return lambda fleet: fleet.edit(kinds.PLACEMENT, body)


def workload_placement(body: Object) -> Callable[[Fleet], Awaitable[None]]:
    return lambda fleet: fleet.patch(kinds.PLACEMENT, "app01-placement", body)


def binding(body: Object) -> Callable[[Fleet], Awaitable[None]]:
    return lambda fleet: fleet.edit(kinds.PLACEMENT_BINDING, body)


def policy(body: Object) -> Callable[[Fleet], Awaitable[None]]:
    return lambda fleet: fleet.patch(kinds.POLICY, CHOSEN, body)


def workload(body: Object) -> Callable[[Fleet], Awaitable[None]]:
    return lambda fleet: fleet.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", body)


def cluster(body: Object) -> Callable[[Fleet], Awaitable[None]]:
    return lambda fleet: fleet.patch(kinds.MANAGED_CLUSTER, "east", body)


def labels(**values: str) -> Object:
    return {"metadata": {"labels": {k.replace("_", "-"): v for k, v in values.items()}}}


async def delete_binding(fleet: Fleet) -> None:
    name = (await fleet.generated(kinds.PLACEMENT_BINDING))["metadata"]["name"]
    await fleet.delete(kinds.PLACEMENT_BINDING, name)


async def take_the_label(fleet: Fleet) -> None:
    name = {"metadata": {"labels": {"dynamic-scoring-framework-mcp/generated": None}}}
    await fleet.patch(kinds.PLACEMENT, "app01-placement", name)


async def give_the_label(fleet: Fleet) -> None:
    name = {"metadata": {"labels": {"dynamic-scoring-framework-mcp/generated": "true"}}}
    await fleet.patch(kinds.PLACEMENT, "app01-placement", name)


async def copy_a_placement(fleet: Fleet) -> None:
    one = await fleet.hub.get(kinds.PLACEMENT, "app01-placement", fleet.namespace)
    metadata = {"name": "copy", "namespace": fleet.namespace, "labels": one["metadata"]["labels"]}
    copy = {key: one[key] for key in ("apiVersion", "kind", "spec")}
    await fleet.hub.create(kinds.PLACEMENT, {**copy, "metadata": metadata})


async def bind_by_hand(fleet: Fleet) -> None:
    one = await fleet.generated(kinds.PLACEMENT_BINDING)
    subject = {**one["subjects"][0], "name": OTHER}
    by_hand = {key: one[key] for key in ("apiVersion", "kind", "placementRef")}
    metadata = {"name": "by-hand", "namespace": fleet.namespace}
    await fleet.hub.create(
        kinds.PLACEMENT_BINDING, {**by_hand, "subjects": [subject], "metadata": metadata}
    )


async def unbind_by_hand(fleet: Fleet) -> None:
    await fleet.delete(kinds.PLACEMENT_BINDING, "by-hand")


async def take_the_set_binding(fleet: Fleet) -> None:
    for item in (await fleet.hub.list(kinds.MANAGED_CLUSTER_SET_BINDING, fleet.namespace)).items:
        await fleet.delete(kinds.MANAGED_CLUSTER_SET_BINDING, item["metadata"]["name"])


async def give_the_set_binding(fleet: Fleet) -> None:
    await fleet.hub.create(
        kinds.MANAGED_CLUSTER_SET_BINDING,
        {
            "apiVersion": kinds.MANAGED_CLUSTER_SET_BINDING.api_version,
            "kind": kinds.MANAGED_CLUSTER_SET_BINDING.kind,
            "metadata": {"name": "global", "namespace": fleet.namespace},
            "spec": {"clusterSet": "global"},
        },
    )


REFERENCE = {"rolloutStrategy": {"type": "All"}}
TAINT = {"key": "maintenance", "effect": "NoSelect"}
UNKNOWN = {"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "nothing"}}
CLAIM = "policy-watcher-claim"

EDITS = {
    "tolerations": Edit(
        placement({"spec": {"tolerations": [{"operator": "Exists"}]}}), "Drifted", "DiffersFromPlan"
    ),
    "sets": Edit(
        workload_placement({"spec": {"clusterSets": ["global"]}}), "Drifted", "DiffersFromPlan"
    ),
    "number": Edit(placement({"spec": {"numberOfClusters": 2}}), "Drifted", "PlacementEdited"),
    "override": Edit(
        binding({"bindingOverrides": {"remediationAction": "enforce"}}),
        "Drifted",
        "DiffersFromPlan",
    ),
    "filter": Edit(binding({"subFilter": "restricted"}), "Drifted", "DiffersFromPlan"),
    "deleted binding": Edit(delete_binding, "Drifted", "MissingFromHub"),
    "deleted placement": Edit(
        lambda fleet: fleet.delete(kinds.PLACEMENT, "app01-placement"), "Drifted", "MissingFromHub"
    ),
    "copy": Edit(copy_a_placement, "Drifted", "PlacementUnused"),
    "generated label": Edit(take_the_label, "Drifted", "LabelRemoved", give_the_label),
    "optimization label": Edit(
        workload_placement(
            {
                "metadata": {
                    "labels": {"dynamic-scoring.open-cluster-management.io/optimization": "mine"}
                }
            }
        ),
        "Drifted",
        "LabelRemoved",
        workload_placement(
            {
                "metadata": {
                    "labels": {"dynamic-scoring.open-cluster-management.io/optimization": None}
                }
            }
        ),
    ),
    "supply": Edit(policy(labels(resource_supply_amount="1")), "Drifted", "SupplyChanged"),
    "device": Edit(policy(labels(resource_supply_device="4g.48gb")), "Drifted", "SupplyChanged"),
    "request": Edit(workload(labels(resource_request_amount="1")), "Drifted", "RequestChanged"),
    "another placement": Edit(
        workload({"spec": {"placementRefs": [{"name": "elsewhere", **REFERENCE}]}}),
        "Drifted",
        "PlacementUnused",
    ),
    "second placement": Edit(
        workload(
            {
                "spec": {
                    "placementRefs": [
                        {"name": name, **REFERENCE} for name in ("app01-placement", "elsewhere")
                    ]
                }
            }
        ),
        "Drifted",
        "SecondPlacement",
    ),
    "deleted workload": Edit(
        lambda fleet: fleet.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01"),
        "Drifted",
        "PlacementUnused",
    ),
    "by hand": Edit(bind_by_hand, "Drifted", "HeldByOthers", unbind_by_hand),
    "taint": Edit(
        cluster({"spec": {"taints": [TAINT]}}),
        "Drifted",
        "ClusterTainted",
        cluster({"spec": {"taints": None}}),
    ),
    "set binding": Edit(
        take_the_set_binding, "Drifted", "ClusterSetNotBound", give_the_set_binding
    ),
    "cluster label": Edit(
        cluster(labels(cluster_name="elsewhere")),
        "Drifted",
        "ClusterLabelMoved",
        cluster({"metadata": {"labels": {"cluster-name": "east"}}}),
    ),
    "disabled": Edit(policy({"spec": {"disabled": True}}), "Landed", "Refused"),
    "manifest": Edit(
        workload({"spec": {"manifestWorkTemplate": {"workload": {"manifests": [UNKNOWN]}}}}),
        "Landed",
        "Planned",
    ),
    "claim": Edit(
        workload_placement(
            {
                "spec": {
                    "predicates": [
                        {
                            "requiredClusterSelector": {
                                "labelSelector": {"matchLabels": {"cluster-name": "east"}},
                                "claimSelector": {
                                    "matchExpressions": [
                                        {"key": CLAIM, "operator": "In", "values": ["never"]}
                                    ]
                                },
                            }
                        }
                    ]
                }
            }
        ),
        "Landed",
        "WaitingForClaim",
    ),
}
"""Edits that people make; the last ones stop a workload."""


AS_PLANNED = {"Landed": ("True", "AllLanded"), "Drifted": ("False", "AsPlanned")}


def test_what_is_told_of_a_plan_in_force_follows_each_edit_by_hand(
    hub: Hub, clusters: list[ManagedCluster], place: str
) -> None:
    asyncio.run(_edited(hub, clusters, place))


async def _edited(hub: Hub, clusters: list[ManagedCluster], namespace: str) -> None:
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(connect(hub.admin_kubeconfig))
        own = {
            cluster.name: await stack.enter_async_context(connect(cluster.admin_kubeconfig))
            for cluster in clusters
        }
        for name, there in own.items():
            await stack.enter_async_context(labelled(kube, name))
            await stack.enter_async_context(running(configure(name, there)))
        service = Optimizer(kube, now=utc_now)
        fleet = Fleet(kube, own["east"], namespace, service)
        await fleet.restore()
        await stack.enter_async_context(running(service.hub.run()))
        await stack.enter_async_context(running(service.landings.run()))
        for name, edit in EDITS.items():
            await told(
                fleet, name, {"Landed": ("True", "AllLanded"), "Drifted": ("False", "AsPlanned")}
            )
            await edit.do(fleet)
            status = "True" if edit.condition == "Drifted" else "False"
            await told(fleet, name, {edit.condition: (status, edit.reason)})
            answer = await service.placement_status(namespace)
            assert all(item.next for item in answer.drift), name
            if edit.undo is not None:
                await edit.undo(fleet)
            await fleet.restore()
        await told(fleet, "restored", AS_PLANNED)
        await landed_when_it_runs(fleet)


async def landed_when_it_runs(fleet: Fleet) -> None:
    """Change all policies, and look at once and again: landed is what the clusters have done."""
    before = (await fleet.east.get(kinds.NODE, "east-control-plane"))["metadata"]["labels"]
    await applied(fleet.service, request(fleet.namespace, "rollout-power"))

    async def landed() -> bool:
        return (await fleet.service.placement_status(fleet.namespace)).landed

    assert not await landed()
    await eventually(landed)
    after = (await fleet.east.get(kinds.NODE, "east-control-plane"))["metadata"]["labels"]
    assert (before["migsettinglabel"], after["migsettinglabel"]) == ("3g.48gb", "2g.24gb")
    works = (await fleet.hub.list(kinds.MANIFEST_WORK, "east", labels=REPLICA_SET_LABEL)).items
    running = [obj for obj in works if replica_set_of(obj)[0] == fleet.namespace]
    assert [is_true(obj, "Applied") and is_true(obj, "Available") for obj in running] == [True]


@contextlib.asynccontextmanager
async def labelled(hub: Kube, name: str) -> AsyncIterator[None]:
    """Give a managed cluster the label by which Placements name it, for a while."""
    before = (await hub.get(kinds.MANAGED_CLUSTER, name))["metadata"].get("labels") or {}
    await hub.patch(kinds.MANAGED_CLUSTER, name, labels(cluster_name=name))
    yield
    label = {"metadata": {"labels": {"cluster-name": before.get("cluster-name")}}}
    await hub.patch(kinds.MANAGED_CLUSTER, name, label)


async def told(fleet: Fleet, name: str, expected: dict[str, tuple[str, str]]) -> None:
    """Wait until the conditions of the plan in force are these."""
    found: object = None

    async def reached() -> bool:
        nonlocal found
        records = (await fleet.hub.list(kinds.PLACEMENT_PLAN, fleet.namespace)).items
        current = [obj for obj in records if (obj.get("status") or {}).get("phase") == "Applied"]
        (record,) = current
        stated = {kind: find(conditions_of(record), kind) or {} for kind in expected}
        found = {
            kind: tuple(map(item.get, ("status", "reason", "message")))
            for kind, item in stated.items()
        }
        return all(
            (item.get("status"), item.get("reason")) == expected[kind]
            for kind, item in stated.items()
        )

    try:
        await eventually(reached, every=0.5)
    except TimeoutError:
        pytest.fail(f"{name}: {expected} expected, found {found}")
