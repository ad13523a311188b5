"""What the hub says of a plan that lands: conditions of its record, events of its workloads."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.api.conditions import conditions_of, find
from dsf.kube import kinds
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, Subresource
from dsf.runtime.reconcile.followed_view import FollowedView
from optimizer.domain.settings import DEFAULTS
from optimizer.follow.placement_status.drift import WORK_GRACE
from optimizer.service.hub.watched_hub import WatchedHub
from optimizer.service.landing_watch import LandingWatch
from optimizer.service.metrics import OptimizerMetrics
from tests.dsf.sim.builders import NOW, make
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.wrapper import Call, Wrapper
from tests.optimizer.follow.placement_status.guide_run import GuideRun, guide_run
from tests.optimizer.hubs import record_keys
from tests.optimizer.inventories import counted, publish


@pytest.fixture
async def run() -> GuideRun:
    return await guide_run()


def landing_watch(kube: Kube, hub: WatchedHub | None = None, **options: Any) -> LandingWatch:
    options = {
        "keys": record_keys(kube),
        "now": lambda: NOW,
        "metrics": OptimizerMetrics(CollectorRegistry()),
        "plans": partial(FollowedView, kube, kinds.PLACEMENT_PLAN, read=_unread),
        **options,
    }
    return LandingWatch(kube, hub or WatchedHub(kube), DEFAULTS, **options)


async def _unread(_: Object) -> None:
    """Nobody follows a single plan here."""


@asynccontextmanager
async def following(kube: Kube, **options: Any) -> AsyncIterator[None]:
    """Follow plans until the end of the block."""
    hub = WatchedHub(kube)
    watch = landing_watch(kube, hub, **options)
    tasks = [asyncio.create_task(loop) for loop in (hub.run(), watch.run())]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def watching(run: GuideRun) -> AsyncIterator[LandingWatch]:
    """Yield a watch that looks when the test says so, while its events are written."""
    watch = landing_watch(run.hub)
    task = asyncio.create_task(watch.write_events())
    yield watch
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def condition(run: GuideRun, type_: str, record: str = "default-1") -> tuple[str, str, str]:
    obj = await run.hub.get(kinds.PLACEMENT_PLAN, record, "default")
    found = find(conditions_of(obj), type_)
    return (found["status"], found["reason"], found["message"]) if found else ("", "", "")


async def events(run: GuideRun, count: int) -> list[tuple[str, str, str]]:
    """Type, reason and object of the first events, once there are so many."""

    async def enough() -> list[tuple[str, str, str]] | None:
        found = [
            (item["type"], item["reason"], item["involvedObject"]["name"])
            for item in (await run.hub.list(kinds.EVENT, "default")).items
            if item["involvedObject"]["kind"] == "ManifestWorkReplicaSet"
        ]
        return sorted(found) if len(found) >= count else None

    return await eventually(enough)


async def test_a_plan_is_followed_until_it_has_landed(run: GuideRun) -> None:
    async with watching(run) as watch:
        await run.place()
        await watch.look()
        assert (await condition(run, "Landed"))[:2] == ("False", "Planned")
        await run.settle()
        await run.divide_gpus("worker01")
        await watch.look()
        status, reason, message = await condition(run, "Landed")
        assert (status, reason) == ("False", "WaitingForPolicy")
        assert message.startswith("0 of 2 replicas landed; 1 WaitingForPolicy, 1 WaitingForClaim")
        await run.divide_gpus("worker02")
        for cluster in ("worker01", "worker02"):
            await run.claim(cluster, "compliant")
        await watch.look()
        assert await condition(run, "Landed") == ("True", "AllLanded", "2 replicas landed")
        assert (await condition(run, "Drifted"))[:2] == ("False", "AsPlanned")
        assert await events(run, 6) == [
            ("Normal", reason, workload)
            for reason, workload in (
                ("Landed", "mwrs-app01"),
                ("Landed", "mwrs-app02"),
                ("Planned", "mwrs-app01"),
                ("Planned", "mwrs-app02"),
                ("WaitingForClaim", "mwrs-app01"),
                ("WaitingForPolicy", "mwrs-app02"),
            )
        ]


async def test_a_lost_cluster_shows_as_drift(run: GuideRun) -> None:
    await run.land()
    async with watching(run) as watch:
        await watch.look()
        lost = {
            "type": "ManagedClusterConditionAvailable",
            "status": "False",
            "reason": "Stopped",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:05:00Z",
        }
        status = {"status": {"conditions": [lost]}}
        await run.hub.patch(kinds.MANAGED_CLUSTER, "worker02", status, subresource="status")
        await watch.look()
    assert await condition(run, "Drifted") == (
        "True",
        "ClusterLost",
        "ManagedCluster worker02: cluster worker02 is not available: Stopped",
    )


async def test_a_look_that_finds_nothing_new_writes_nothing(run: GuideRun) -> None:
    await run.land()
    async with watching(run) as watch:
        await watch.look()
    counting = Counting(run.hub)
    again = landing_watch(counting)
    await again.look()
    assert counting.writes == 0


class Lists(Wrapper):
    """A hub that notes which kinds are listed, and in which namespace."""

    def __init__(self, hub: Kube) -> None:
        super().__init__(hub)
        self.listed = list[tuple[Kind, str | None]]()

    def before(self, call: Call) -> None:
        """Note the lists."""
        if call.verb == "list":
            self.listed.append((call.kind, call.namespace))


async def test_a_look_at_many_namespaces_lists_each_kind_once(run: GuideRun) -> None:
    await run.land()
    record = await run.hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    for namespace in ("team-a", "team-b"):
        await run.hub.create(kinds.NAMESPACE, make(kinds.NAMESPACE, namespace))
        metadata = {"name": "default-1", "namespace": namespace}
        await run.hub.create(kinds.PLACEMENT_PLAN, {**record, "metadata": metadata})
        applied = {"status": {"phase": "Applied"}}
        await run.hub.patch(
            kinds.PLACEMENT_PLAN, "default-1", applied, namespace, subresource="status"
        )
    hub = Lists(run.hub)
    watch = landing_watch(hub)
    await watch.look()
    assert hub.listed.count((kinds.POLICY, None)) == 1
    assert hub.listed.count((kinds.MANAGED_CLUSTER, None)) == 1
    hub.listed.clear()
    await watch.look({"team-a"})
    assert (kinds.PLACEMENT_PLAN, None) not in hub.listed, "records of others were read"


class WrittenMeanwhile(Wrapper):
    """A hub on which somebody else writes a record just before the watch first does."""

    def __init__(self, hub: Kube) -> None:
        super().__init__(hub)
        self._written = False

    async def patch(
        self,
        kind: kinds.Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        """Annotate the record first, so that the patch conflicts."""
        if kind == kinds.PLACEMENT_PLAN and not self._written:
            self._written = True
            seen = {"metadata": {"annotations": {"example.com/seen": "yes"}}}
            await self._inner.patch(kind, name, seen, namespace)
        return await super().patch(kind, name, patch, namespace, subresource=subresource)


async def test_a_landing_that_another_write_hid_is_told_at_the_next_look(run: GuideRun) -> None:
    await run.land()
    watch = landing_watch(WrittenMeanwhile(run.hub))
    task = asyncio.create_task(watch.write_events())
    await watch.look()
    assert await condition(run, "Landed") == ("", "", "")
    await watch.look()
    assert (await condition(run, "Landed"))[:2] == ("True", "AllLanded")
    assert {reason for _, reason, _ in await events(run, 2)} == {"Landed"}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class FailsOnce(Wrapper):
    """A hub whose first answer nobody could expect."""

    def before(self, call: Call) -> None:
        """Raise at the first call."""
        if call.number == 1:
            raise RuntimeError


async def test_an_unexpected_error_ends_no_later_look(run: GuideRun) -> None:
    await run.land()
    async with following(FailsOnce(run.hub), poll_seconds=0.001):

        async def landed() -> bool:
            return (await condition(run, "Landed"))[0] == "True"

        await eventually(landed)


async def test_a_change_is_told_without_waiting_for_a_poll(run: GuideRun) -> None:
    await run.land()
    async with following(run.hub, poll_seconds=3600):

        async def reads(type_: str, status: str, reason: str) -> None:
            async def told() -> bool:
                return (await condition(run, type_))[:2] == (status, reason)

            await eventually(told)

        await reads("Landed", "True", "AllLanded")
        await run.hub.patch(
            kinds.MANIFEST_WORK, "mwrs-app01", {"metadata": {"finalizers": []}}, "worker01"
        )
        await run.hub.delete(kinds.MANIFEST_WORK, "mwrs-app01", "worker01")
        await reads("Landed", "False", "Planned")
        await run.settle()
        await reads("Landed", "True", "AllLanded")
        label = {"metadata": {"labels": {"cluster-name": "elsewhere"}}}
        await run.hub.patch(kinds.MANAGED_CLUSTER, "worker02", label)
        await reads("Drifted", "True", "ClusterLabelMoved")
        await run.hub.patch(
            kinds.MANAGED_CLUSTER,
            "worker02",
            {"metadata": {"labels": {"cluster-name": "worker02"}}},
        )
        await reads("Drifted", "False", "AsPlanned")


def pods_of(registry: CollectorRegistry) -> dict[str, float | None]:
    name = "dynamic_scoring_optimizer_workload_pods"
    states = ("ready", "not_ready", "pending")
    return {state: registry.get_sample_value(name, {"state": state}) for state in states}


async def test_pods_are_told_as_they_change_and_counted(run: GuideRun) -> None:
    await run.land()
    registry = CollectorRegistry()
    async with following(run.hub, poll_seconds=3600, metrics=OptimizerMetrics(registry)):

        async def reads(status: str, reason: str) -> None:
            async def told() -> bool:
                return (await condition(run, "Landed"))[:2] == (status, reason)

            await eventually(told)

        await reads("True", "AllLanded")
        await publish(run.hub, counted(3, 1, 1))
        await reads("False", "WaitingForPods")
        assert pods_of(registry) == {"ready": 1, "not_ready": 2, "pending": 1}
        await publish(run.hub, counted(4, 4))
        await reads("True", "AllLanded")
        assert pods_of(registry) == {"ready": 4, "not_ready": 0, "pending": 0}
        assert ("Warning", "WaitingForPods", "mwrs-app01") in await events(run, 4)
        await run.optimizer.reset("default")

        async def forgotten() -> bool:
            return pods_of(registry)["ready"] == 0

        await eventually(forgotten)


async def test_what_time_alone_makes_true_is_told_at_that_time(run: GuideRun) -> None:
    await run.land()
    await run.hub.patch(
        kinds.MANIFEST_WORK, "mwrs-app01", {"metadata": {"finalizers": []}}, "worker01"
    )
    await run.hub.delete(kinds.MANIFEST_WORK, "mwrs-app01", "worker01")
    began = time.monotonic()

    def now() -> datetime:
        return NOW + WORK_GRACE - timedelta(seconds=2) + timedelta(seconds=time.monotonic() - began)

    async with following(run.hub, now=now, poll_seconds=3600):

        async def told(reason: str) -> None:
            async def missing() -> bool:
                return (await condition(run, "Drifted"))[1] == reason

            await eventually(missing, seconds=30)

        await told("AsPlanned")
        await told("ManifestWorkMissing")


class WithoutWorks(Wrapper):
    """A hub whose ManifestWorks may not be listed."""

    def before(self, call: Call) -> None:
        """Refuse the kind."""
        if call.kind == kinds.MANIFEST_WORK:
            raise Forbidden("manifestworks is forbidden")


async def test_what_may_not_be_watched_is_polled(run: GuideRun) -> None:
    await run.land()
    async with following(WithoutWorks(run.hub), poll_seconds=0.01):

        async def told() -> bool:
            return (await condition(run, "Landed"))[0] == "True"

        await eventually(told)


async def test_only_the_plan_in_force_is_followed(run: GuideRun) -> None:
    await run.place()
    assert isinstance(await run.optimizer.reset("default"), object)
    async with watching(run) as watch:
        await watch.look()
    assert await condition(run, "Landed") == ("", "", "")
