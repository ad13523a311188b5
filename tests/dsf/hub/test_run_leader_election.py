"""Two controllers on one hub: one leads; the other one stands by and takes over."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from dsf.hub.run import STAND_BY_SECONDS, HubController, HubOptions
from dsf.kube.kinds import DYNAMIC_SCORER, LEASE, MANIFEST_WORK
from dsf.kube.port import Kube
from dsf.runtime.leader_election import LeaderElector
from dsf.runtime.lease import LeaderElectionConfig
from tests.dsf.hub.builders import HUB, scorer
from tests.dsf.hub.scoring_api import scoring_api
from tests.dsf.hub.test_run import (
    fresh,
    named,
    register,
    two_clusters,
    until_distributed,
    until_ready,
)
from tests.eventually import eventually
from tests.kube_wrappers.wrapper import WRITES, Call, Wrapper


class Writes(Wrapper):
    """Counts the writes to anything but the Lease."""

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.count = 0

    def before(self, call: Call) -> None:
        self.count += call.verb in WRITES and call.kind != LEASE


@dataclass
class Replica:
    controller: HubController
    elector: LeaderElector
    writes: Writes
    task: asyncio.Task[None]

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def replica(kube: Kube, name: str) -> AsyncIterator[Replica]:
    writes, registry = Writes(kube), CollectorRegistry()
    options = HubOptions(resync_seconds=0.1, probe_seconds=0.1)
    controller = HubController(writes, options, registry=registry)
    candidacy = LeaderElectionConfig("dynamic-scoring-controller", HUB, name, 2.0, 1.5, 0.05)
    elector = LeaderElector(writes, candidacy, registry=registry)
    running = Replica(controller, elector, writes, asyncio.create_task(controller.run(elector.run)))
    try:
        yield running
    finally:
        await running.stop()


async def leads(one: Replica) -> bool:
    return one.elector.leading


async def listed(one: Replica) -> bool:
    return await one.controller.unready_reason() is None


async def test_only_the_leader_writes_and_the_other_takes_over() -> None:
    hub = await two_clusters()
    async with scoring_api() as api, scoring_api(named("new")) as other, replica(hub, "a") as first:
        await register(hub, "cpu", api)
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])
        async with replica(hub, "b") as second:
            await eventually(lambda: listed(second))
            await hub.patch(DYNAMIC_SCORER, "cpu", {"spec": {"configURL": other.config_url}}, HUB)
            await until_distributed(hub, c1=["new"], c2=["new"])
            await until_ready(hub, "cpu")
            assert (first.elector.leading, second.elector.leading) == (True, False)
            assert second.writes.count == 0
            await first.stop()
            await eventually(lambda: leads(second))
            await hub.patch(DYNAMIC_SCORER, "cpu", {"spec": {"configURL": api.config_url}}, HUB)
            await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])


async def test_one_that_leads_again_asks_again() -> None:
    hub = await two_clusters()
    async with scoring_api() as api, replica(hub, "a") as first:
        await register(hub, "cpu", api)
        await until_ready(hub, "cpu")
        lease = await hub.get(LEASE, "dynamic-scoring-controller", HUB)
        theirs = {**lease["spec"], "holderIdentity": "another", "leaseDurationSeconds": 1}
        await hub.patch(LEASE, "dynamic-scoring-controller", {"spec": theirs}, HUB)
        await eventually(lambda: follows(first))
        api.health = 503
        await eventually(lambda: leads(first))
        await until_distributed(hub, c1=[], c2=[])


class Lists(Wrapper):
    """Counts the lists of each resource."""

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.count = Counter[str]()

    def before(self, call: Call) -> None:
        if call.verb == "list":
            self.count[call.kind.resource] += 1


@pytest.mark.virtual_time
@pytest.mark.parametrize("holder", ["", "a"])
async def test_a_restarted_leader_waits_for_no_lease_and_lists_once(holder: str) -> None:
    """Its own name is on the Lease if it was killed, and none if it was told to stop."""
    hub = await two_clusters()
    await hub.create(DYNAMIC_SCORER, fresh(scorer("cpu", url="http://127.0.0.1:1/config")))
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    lease = {"name": "dynamic-scoring-controller", "namespace": HUB}
    await hub.create(LEASE, {"metadata": lease, "spec": spec})
    lists = Lists(hub)
    async with replica(lists, "a"):
        await eventually(lambda: has_works(hub))
        assert asyncio.get_running_loop().time() < STAND_BY_SECONDS
        # Those of other namespaces are listed for themselves.
        assert lists.count.pop(DYNAMIC_SCORER.resource) == 2
        assert set(lists.count.values()) == {1}


async def has_works(hub: Kube) -> bool:
    return len((await hub.list(MANIFEST_WORK)).items) == 2


async def follows(one: Replica) -> bool:
    return not one.elector.leading
