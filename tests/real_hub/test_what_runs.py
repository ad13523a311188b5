"""Two teams, two pools, resets and rollbacks in random orders: what runs fits, stops are told.

DSF_ORDERS says how many orders (6); `make fire-hub` runs 100.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from dsf.api.names import CLUSTER_CLAIM, GROUP, REPLICA_SET_LABEL
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import diff
from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from dsf.kube.port import WatchEvent
from optimizer.plan.plan import Plan, result
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.object_readers import replica_set_of
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.result import Applied, ResetResult
from tests.eventually import eventually

from .harness.bound_namespace import bound
from .test_rollout import collect, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsf.kube.port import Kube, Object

    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

ORDERS = int(os.environ.get("DSF_ORDERS", "6"))
OPERATIONS = 5
SEED = 25
CLUSTERS = ("east", "west")
SUPPLIES = {"big": ("gpu", 2), "small": ("gpu", 3), "npu": ("npu", 3)}
"""The kind and the amount of each device; the policies of a kind are a pool."""

DEMANDS = {"vision": ("gpu", 2), "speech": ("gpu", 2), "tiny": ("gpu", 1), "audio": ("npu", 2)}
SCORES = {
    "fast": {"big": 60, "small": 20, "npu": 50},
    "thrifty": {"big": 10, "small": 40, "npu": 30},
}
QUIET_SECONDS = 1.5
"""OCM writes nothing more for so long once it is done; its controllers answer events at once."""

pytestmark = pytest.mark.usefixtures("policies", "placement_plans")

Workload = tuple[str, str]
"""Namespace and name of a ManifestWorkReplicaSet."""


def policy(namespace: str, device: str, cluster: str) -> Object:
    kind, amount = SUPPLIES[device]
    labels = {
        "resource-supply-kind": kind,
        "resource-supply-device": device,
        "resource-supply-amount": str(amount),
    }
    metadata = {"name": f"{device}-{cluster}", "namespace": namespace, "labels": labels}
    metadata["annotations"] = {f"{GROUP}/pool": kind}
    made = {"apiVersion": "v1", "kind": "ConfigMap"}
    made["metadata"] = {"name": f"{namespace}-{device}", "namespace": "default"}
    template = {
        "apiVersion": kinds.POLICY.api_version,
        "kind": "ConfigurationPolicy",
        "metadata": {"name": f"{namespace}-{device}"},
        "spec": {
            "remediationAction": "enforce",
            "severity": "low",
            "object-templates": [{"complianceType": "musthave", "objectDefinition": made}],
        },
    }
    spec = {"disabled": False, "remediationAction": "enforce"}
    spec["policy-templates"] = [{"objectDefinition": template}]
    header = {"apiVersion": kinds.POLICY.api_version, "kind": "Policy"}
    return {**header, "metadata": metadata, "spec": spec}


def workload(namespace: str, name: str) -> Object:
    kind, amount = DEMANDS[name]
    labels = {"app": name, "resource-request-kind": kind, "resource-request-amount": str(amount)}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap"}
    manifest["metadata"] = {"name": f"{namespace}-{name}", "namespace": "default"}
    spec = {
        "placementRefs": [{"name": name, "rolloutStrategy": {"type": "All"}}],
        "manifestWorkTemplate": {"workload": {"manifests": [manifest]}},
    }
    kind_ = kinds.MANIFEST_WORK_REPLICA_SET
    header = {"apiVersion": kind_.api_version, "kind": kind_.kind}
    return {
        **header,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


@pytest.fixture
def teams(
    hub: Hub, bound_namespace: str, clusters: list[ManagedCluster]
) -> Iterator[tuple[str, str]]:
    """Two namespaces with the same policies and workloads; both clusters have scores."""
    other = hub.namespace(f"{bound_namespace}-b")
    for namespace in (bound_namespace, other):
        for name in DEMANDS:
            hub.apply(workload(namespace, name))
        for device in SUPPLIES:
            for cluster in CLUSTERS:
                hub.apply(policy(namespace, device, cluster))
    kind = kinds.ADD_ON_PLACEMENT_SCORE
    header = {"apiVersion": kind.api_version, "kind": kind.kind}
    for cluster in clusters:
        for name, values in SCORES.items():
            entries = [
                {"name": f"{app};{device}", "value": value}
                for app in DEMANDS
                for device, value in values.items()
            ]
            hub.apply({**header, "metadata": {"name": name, "namespace": cluster.name}})
            status = {"status": {"scores": entries}}
            hub.api.patch(*header.values(), name, status, cluster.name, subresource="status")
    with bound(hub, other):
        yield bound_namespace, other
    for cluster in clusters:
        for name in SCORES:
            hub.api.delete(*header.values(), name, cluster.name)
        claim = (kinds.CLUSTER_CLAIM.api_version, kinds.CLUSTER_CLAIM.kind)
        cluster.api.delete(*claim, CLUSTER_CLAIM)


@pytest.mark.long
@pytest.mark.fire(
    "what runs fits, and no stop is untold",
    "orders of plans, resets and rollbacks of two teams on a real hub",
    count=ORDERS,
)
def test_what_runs_fits_and_no_stop_is_untold(
    hub: Hub, clusters: list[ManagedCluster], teams: tuple[str, str]
) -> None:
    asyncio.run(_orders(hub, clusters, teams))


async def watch_policies(name: str, cluster: Kube) -> None:
    """Be the policy watcher of a cluster without a stable window, until cancelled."""
    while True:
        policies = (await cluster.list(kinds.POLICY, name)).items
        done = [(item.get("status") or {}).get("compliant") == "Compliant" for item in policies]
        value = ("compliant" if all(done) else "noncompliant") if done else "empty"
        claim = {
            "apiVersion": kinds.CLUSTER_CLAIM.api_version,
            "kind": kinds.CLUSTER_CLAIM.kind,
            "metadata": {"name": CLUSTER_CLAIM},
            "spec": {"value": value},
        }
        there = (await cluster.list(kinds.CLUSTER_CLAIM)).items
        own = [item for item in there if item["metadata"]["name"] == CLUSTER_CLAIM]
        await apply(cluster, diff(kinds.CLUSTER_CLAIM, [claim], own))
        await asyncio.sleep(0.1)


async def _orders(hub: Hub, clusters: list[ManagedCluster], teams: tuple[str, str]) -> None:
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(connect(hub.admin_kubeconfig))
        for cluster in clusters:
            own = await stack.enter_async_context(connect(cluster.admin_kubeconfig))
            await stack.enter_async_context(running(watch_policies(cluster.name, own)))
        events = list[WatchEvent]()
        for kind in (kinds.MANIFEST_WORK, kinds.PLACEMENT_DECISION, kinds.POLICY):
            version = (await kube.list(kind)).resource_version
            await stack.enter_async_context(running(collect(kube, kind, version, events)))
        done, left = Counter[str](), Counter[str]()
        for number in range(ORDERS):
            seeded = random.Random(SEED + number)  # noqa: S311 - not for secrets
            order = _Order(kube, teams, events, seeded, left)
            for _ in range(OPERATIONS):
                done[await order.operate()] += 1
            for namespace in teams:
                await order.reset(namespace, stop=True)
                await order.reset(namespace, stop=False)
            done[await order.go_back()] += 1
        print(dict(done), dict(left))  # noqa: T201 - with -s: how often each was done
        assert {"apply", "reset", "reset and stop"} <= done.keys()
        assert done["rollback"] >= ORDERS, done
        # What OCM stops after a reset because it saw the decisions go first.
        assert left["stopped"] <= 2 + left["told"] // 20, left


@dataclass
class _Order:
    """One random order of operations; after each one, what was told is compared with the hub."""

    kube: Kube
    teams: tuple[str, str]
    events: list[WatchEvent]
    random: random.Random
    left: Counter[str]
    told: list[str] = field(default_factory=list)
    runs: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def service(self) -> Optimizer:
        return Optimizer(self.kube, now=utc_now)

    async def operate(self) -> str:
        """Do something at random; return what was done."""
        team = self.random.choice(self.teams)
        match self.random.choice(["plan", "plan", "plan", "reset", "stop", "rollback"]):
            case "reset":
                return await self.reset(team, stop=False)
            case "stop":
                return await self.reset(team, stop=True)
            case "rollback":
                asked = RollbackRequest(namespace=team)
                return await self.apply(await self.service.plan_rollback(asked), "rollback")
            case _:
                return await self.apply(await self.service.plan(self.request(team)), "apply")

    async def go_back(self) -> str:
        """Where no plan is in force, apply two that differ, and roll back: nothing forbids it."""
        team, made = self.teams[0], list[Plan]()
        for _ in range(100):
            request = self.request(team).model_copy(update={"prune": True})
            plan = await self.service.plan(request)
            assert isinstance(plan, Plan), plan
            if plan.manifests and plan.changes:
                await self.apply(plan, "apply")
                made.append(plan)
            if len(made) == 2:
                break
        rolled_back = await self.service.plan_rollback(RollbackRequest(namespace=team))
        what = await self.apply(rolled_back, "rollback")
        for stop in (True, False):
            await self.reset(team, stop=stop)
        return what

    def request(self, team: str) -> OptimizeRequest:
        names = self.random.sample(list(DEMANDS), self.random.randint(1, len(DEMANDS)))
        on = self.random.sample(CLUSTERS, self.random.randint(1, len(CLUSTERS)))
        own = [
            {"name": name, "availablePolicies": [{"name": f"{d}-{name}"} for d in SUPPLIES]}
            for name in on
        ]
        return OptimizeRequest.model_validate(
            {
                "namespace": team,
                "clusters": own,
                "targetWorkloads": [{"name": name} for name in names],
                "preference": {"addonPlacementScore": self.random.choice(list(SCORES))},
                "prune": self.random.random() < 0.7,
            }
        )

    async def apply(self, plan: Any, what: str) -> str:
        if not isinstance(plan, Plan):
            return f"{what} refused: {plan.reason}"
        since = len(self.events)
        outcome = await self.service.apply(plan)
        assert isinstance(outcome, Applied), outcome
        assert outcome.failed == ()
        namespace, told = plan.request.namespace, result(plan, None)
        stops = {
            (namespace, item.workload)
            for item in told.moves
            if item.uncovered or item.action in ("moves", "shrinks", "stops")
        }
        stops |= {(i.namespace, name) for i in told.uncovers_others for name in i.workloads}
        self.told.append(f"{what} {plan.request.model_dump_json(exclude_unset=True)} stops {stops}")
        await self.check(since, stops)
        return what

    async def reset(self, team: str, *, stop: bool) -> str:
        since = len(self.events)
        done = await self.service.reset(team, stop_workloads=stop)
        assert isinstance(done, ResetResult), done
        assert done.failed == ()
        stops = {(team, item.workload) for item in done.stopping}
        stops |= {(i.namespace, name) for i in done.uncovers_others for name in i.workloads}
        what = "reset and stop" if stop else "reset"
        self.told.append(f"{what} {team} stops {stops}")
        left = {(team, item.workload, name) for item in done.running for name in item.clusters}
        runs = await self.check(since, stops | {item[:2] for item in left})
        self.left["told"] += len(left)
        self.left["stopped"] += len(left - runs)
        return what

    async def check(self, since: int, stops: set[Workload]) -> set[tuple[str, str, str]]:
        """Wait until OCM is done; fail if too much runs or something stopped untold."""
        await self.settle()
        gone = {
            (*replica_set_of(event.object), event.object["metadata"]["namespace"])
            for event in self.events[since:]
            if event.object["kind"] == kinds.MANIFEST_WORK.kind
            and (event.type == "DELETED" or event.object["metadata"].get("deletionTimestamp"))
        }
        # Without a stable window, what starts may stop once more when the next policy arrives.
        untold = {item for item in gone & self.runs if item[:2] not in stops}
        assert untold == set(), (untold, self.told)
        works = (await self.kube.list(kinds.MANIFEST_WORK, labels=REPLICA_SET_LABEL)).items
        runs = {(*replica_set_of(work), work["metadata"]["namespace"]) for work in works}
        runs = self.runs = {item for item in runs if item[0] in self.teams}
        used = Counter[tuple[str, str]]()
        for _, name, cluster in runs:
            kind, amount = DEMANDS[name]
            used[cluster, kind] += amount
        for (cluster, kind), amount in used.items():
            assert amount <= await self.capacity(cluster, kind), (cluster, kind, runs, self.told)
        return runs

    async def capacity(self, cluster: str, kind: str) -> int:
        """What the policy in force supplies; without one, the most that any could."""
        enforced = (await self.kube.list(kinds.POLICY, cluster)).items
        devices = {item["metadata"]["name"].partition(".")[2].split("-")[0] for item in enforced}
        own = {device for device in devices if SUPPLIES[device][0] == kind}
        assert len(own) <= 1, devices
        return max(SUPPLIES[name][1] for name in own or SUPPLIES if SUPPLIES[name][0] == kind)

    async def settle(self) -> None:
        """Wait until policies are compliant, claims say so, and OCM writes nothing more."""

        async def claimed() -> bool:
            for cluster in CLUSTERS:
                enforced = (await self.kube.list(kinds.POLICY, cluster)).items
                states = {(item.get("status") or {}).get("compliant") for item in enforced}
                managed = await self.kube.get(kinds.MANAGED_CLUSTER, cluster)
                listed = (managed.get("status") or {}).get("clusterClaims") or ()
                claims = {item["name"]: item["value"] for item in listed}
                if states > {"Compliant"} or None in states:
                    return False
                if claims.get(CLUSTER_CLAIM) != ("compliant" if states else "empty"):
                    return False
            return True

        seen = -1
        while seen != len(self.events):
            seen = len(self.events)
            await asyncio.sleep(QUIET_SECONDS)
            await eventually(claimed, every=0.2)
