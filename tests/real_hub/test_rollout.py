"""The guide's change from performance to power, step by step on OCM; servers die at each write."""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import AsyncExitStack, aclosing
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from dsf.api.names import CLUSTER_CLAIM, REPLICA_SET_LABEL
from dsf.api.untrusted_text import InvalidInput
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import diff
from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from dsf.kube.port import WatchEvent
from optimizer.follow.rollout.rollout_record import RolloutRecord, rollout_record
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Applied
from tests.eventually import eventually
from tests.optimizer.follow.rollout.coverage import uncovered_events
from tests.optimizer.service.test_namespace_lease import Killed, Mortal

from .harness.api import parse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dsf.kube.kinds import Kind
    from dsf.kube.port import Kube, Object

    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

NAMES = {"worker01": "east", "worker02": "west"}
SCORES = {
    "rollout-performance": {"3g.48gb": (60, 55), "2g.24gb": (10, 15), "all": (10, 10)},
    "rollout-power": {"3g.48gb": (30, 55), "2g.24gb": (80, 90), "all": (20, 10)},
}
SECONDS = 0.1
"""Pause between two looks of those who stand in for MIG managers and policy watchers."""

READY_SECONDS = 10
"""More than what passes until OCM reports that a policy which was compliant by an old label is not.

With 2 s, a workload once landed in between, and was stopped again.
"""

UNDONE = 3
"""The state at which a rollout is turned back: a policy has been replaced, and another has not."""

pytestmark = pytest.mark.usefixtures("policies", "placement_plans")


def adapted(text: str) -> str:
    for name, here in NAMES.items():
        text = text.replace(name, here)
    return text


def manifests(namespace: str) -> list[Object]:
    folder = resources.files("dsf.sim") / "scenario" / "manifests"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    objects = [obj for file in files for obj in parse(adapted(file.read_text()))]
    for obj in objects:
        obj["metadata"]["namespace"] = namespace
    return objects


def request(namespace: str, score: str, **fields: object) -> OptimizeRequest:
    text = (resources.files("dsf.sim") / "scenario" / "params.json").read_text()
    body = json.loads(adapted(text)) | {"namespace": namespace, **fields}
    body["minReadySeconds"] = READY_SECONDS
    body["preference"]["addonPlacementScore"] = score
    return OptimizeRequest.model_validate(body)


@pytest.fixture
def place(hub: Hub, clusters: list[ManagedCluster], bound_namespace: str) -> str:
    """A namespace with the guide's policies and workloads; both clusters have a node and scores."""
    for obj in manifests(bound_namespace):
        hub.apply(obj)
    for cluster in clusters:
        node = {"name": f"{cluster.name}-control-plane"}
        cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": node})
        for name, table in SCORES.items():
            kind = kinds.ADD_ON_PLACEMENT_SCORE
            metadata = {"name": name, "namespace": cluster.name}
            hub.apply({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
            scores = [
                {"name": f"app0{number + 1};{device}", "value": value}
                for device, values in table.items()
                for number, value in enumerate(values)
            ]
            status = {"status": {"scores": scores}}
            hub.api.patch(
                kind.api_version, kind.kind, name, status, cluster.name, subresource="status"
            )
    return bound_namespace


async def configure(name: str, cluster: Kube) -> None:
    """Be the MIG manager and the policy watcher of a cluster, until cancelled."""
    configured = ""
    while True:
        node = await cluster.get(kinds.NODE, f"{name}-control-plane")
        wanted = (node["metadata"].get("labels") or {}).get("migsettinglabel", "")
        if wanted and wanted != configured:
            for result in ("false", "true"):
                labels = {"metadata": {"labels": {"migresultlabel": result}}}
                await cluster.patch(kinds.NODE, f"{name}-control-plane", labels)
            configured = wanted
        policies = (await cluster.list(kinds.POLICY, name)).items
        done = [(item.get("status") or {}).get("compliant") == "Compliant" for item in policies]
        value = ("compliant" if all(done) else "noncompliant") if done else "empty"
        claim = {
            "apiVersion": kinds.CLUSTER_CLAIM.api_version,
            "kind": kinds.CLUSTER_CLAIM.kind,
            "metadata": {"name": CLUSTER_CLAIM},
            "spec": {"value": value},
        }
        there = [
            item
            for item in (await cluster.list(kinds.CLUSTER_CLAIM)).items
            if item["metadata"]["name"] == CLUSTER_CLAIM
        ]
        await apply(cluster, diff(kinds.CLUSTER_CLAIM, [claim], there))
        await asyncio.sleep(SECONDS)


async def collect(hub: Kube, kind: Kind, version: str, found: list[WatchEvent]) -> None:
    """Append every event of a kind, until cancelled."""
    while True:
        async with aclosing(hub.watch(kind, resource_version=version)) as events:
            async for event in events:
                version = event.object["metadata"]["resourceVersion"]
                if event.type != "BOOKMARK":
                    found.append(event)


@contextlib.asynccontextmanager
async def running(*work: object) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(item) for item in work]  # type: ignore[call-overload]
    try:
        yield
        for task in tasks:
            assert not task.done(), task.exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.long
@pytest.mark.fire(
    "after a kill at any write the next server makes one whole plan",
    "servers killed after each write of a Stepwise rollout, on a real hub",
)
def test_a_rollout_whose_server_is_killed_after_each_write_uncovers_nothing_else(
    hub: Hub,
    clusters: list[ManagedCluster],
    place: str,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("count", asyncio.run(_rolled_out(hub, clusters, place)))


async def _rolled_out(hub: Hub, clusters: list[ManagedCluster], namespace: str) -> int:
    """Return how many servers were killed."""
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(connect(hub.admin_kubeconfig))
        for cluster in clusters:
            own = await stack.enter_async_context(connect(cluster.admin_kubeconfig))
            await stack.enter_async_context(running(configure(cluster.name, own)))
        service = Optimizer(kube, now=utc_now)
        await applied(service, request(namespace, "rollout-performance"))
        await eventually(lambda: landed(service, namespace), every=0.5)
        listed = await kube.list(kinds.MANIFEST_WORK)
        started = [
            (item["metadata"]["name"], item["metadata"]["namespace"])
            for item in listed.items
            if (item["metadata"].get("labels") or {})
            .get(REPLICA_SET_LABEL, "")
            .startswith(f"{namespace}.")
        ]
        events = list[WatchEvent]()
        for kind in (kinds.MANIFEST_WORK, kinds.PLACEMENT_PLAN):
            following = collect(kube, kind, listed.resource_version, events)
            await stack.enter_async_context(running(following))
        asked = request(
            namespace, "rollout-power", rollout="Stepwise", minReadySeconds=READY_SECONDS
        )
        name = (await applied(service, asked)).record
        kills = await mortal_servers(kube, namespace, name)
        record = await read(kube, namespace, name)
        assert record.progress.phase == "Complete", record.obj["status"]
        await eventually(lambda: landed(service, namespace), every=0.5)
        assert not isinstance(record.plan, InvalidInput)
        planned = {app for step in record.plan.actions for app in step.uncovered}
        assert set(uncovered_events(events, record, started)) == planned != set()
        assert kills > len(record.plan.actions)
        again = await service.plan(asked)
        assert isinstance(again, Plan)
        assert again.changes == ()
        await turned_back(service, kube, namespace)
    return kills


async def turned_back(service: Optimizer, kube: Kube, namespace: str) -> None:
    """Begin to roll out performance again, and turn that back after a few steps."""
    asked = request(
        namespace, "rollout-performance", rollout="Stepwise", minReadySeconds=READY_SECONDS
    )
    before = await objects(kube, namespace)
    name = (await applied(service, asked)).record
    async with asyncio.timeout(300):
        while not (record := await read(kube, namespace, name)).progress.ended:
            if record.progress.target == UNDONE and not record.progress.turning_back:
                await service.rollouts.command(namespace, "default", "undo")
            if not await service.rollouts.advance(namespace, name):
                await asyncio.sleep(SECONDS)
    assert record.progress.phase == "TurnedBack"
    await eventually(lambda: landed(service, namespace), every=0.5)
    assert await objects(kube, namespace) == before


async def objects(kube: Kube, namespace: str) -> dict[str, object]:
    """The specs of generated Placements, and what is bound to them."""
    found = dict[str, object]()
    for item in (await kube.list(kinds.PLACEMENT, namespace)).items:
        found[item["metadata"]["name"]] = item["spec"]
    for item in (await kube.list(kinds.PLACEMENT_BINDING, namespace)).items:
        found[item["metadata"]["name"]] = item["subjects"]
    return found


async def mortal_servers(kube: Kube, namespace: str, name: str) -> int:
    """Let servers work that die, each after one write more, until one of them has nothing to do."""
    kills, writes = 0, 1
    async with asyncio.timeout(400):
        while not (await read(kube, namespace, name)).progress.ended:
            mortal = Mortal(kube, writes)
            with contextlib.suppress(Killed, BaseExceptionGroup):
                await server(mortal).rollouts.advance(namespace, name)
            if mortal.dead:
                kills, writes = kills + 1, writes + 1
            else:
                writes = 1
                await asyncio.sleep(SECONDS)
    await Optimizer(kube, now=utc_now).rollouts.advance(namespace, name)
    return kills


def server(kube: Kube) -> Optimizer:
    """Return a server as a container that is started again in its Pod has it."""
    return Optimizer(kube, now=utc_now, identity="server")


async def applied(service: Optimizer, asked: OptimizeRequest) -> Applied:
    plan = await service.plan(asked)
    assert isinstance(plan, Plan), plan
    done = await service.apply(plan)
    assert isinstance(done, Applied), done
    assert done.failed == ()
    return done


async def landed(service: Optimizer, namespace: str) -> bool:
    return (await service.placement_status(namespace)).landed


async def read(kube: Kube, namespace: str, name: str) -> RolloutRecord:
    record = rollout_record(await kube.get(kinds.PLACEMENT_PLAN, name, namespace))
    assert record is not None
    return record
