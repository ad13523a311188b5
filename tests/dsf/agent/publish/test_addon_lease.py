"""The add-on's Lease on the managed cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dsf.agent.publish.addon_lease import AddOnLease
from dsf.agent.publish.placement_score import placement_score
from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import LEASE, NAMESPACE
from dsf.kube.port import Kube
from tests.dsf.agent.conftest import AGENT_NAMESPACE
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAME = "dynamic-scoring-framework"


async def lease(kube: Kube) -> dict[str, Any]:
    found = await kube.get(LEASE, NAME, AGENT_NAMESPACE)
    return dict(found["spec"])


def holding(kube: Kube, holder: str = "pod-a", start: datetime = START) -> AddOnLease:
    time = asyncio.get_running_loop().time
    return AddOnLease(
        kube,
        AGENT_NAMESPACE,
        holder,
        PublisherIdentity(),
        lambda: start + timedelta(seconds=time()),
    )


@asynccontextmanager
async def kept(lease_: AddOnLease) -> AsyncIterator[None]:
    task = asyncio.create_task(lease_.keep(lambda: True))
    await lease_.decided.wait()
    yield
    task.cancel()
    await asyncio.wait([task])


@pytest.fixture
async def managed() -> EmbeddedHub:
    kube = EmbeddedHub()
    await kube.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    return kube


@pytest.mark.virtual_time
async def test_it_is_created_and_then_renewed(managed: EmbeddedHub) -> None:
    held = holding(managed)
    assert await held.renew() == ""
    await asyncio.sleep(60.25)
    assert await held.renew() == ""
    found = await lease(managed)
    assert found["renewTime"] == "2026-01-01T12:01:00.250000Z"
    assert found["leaseDurationSeconds"] == 60
    assert (found["holderIdentity"], held.identity.rival) == ("pod-a", "")
    uid = (await managed.get(LEASE, NAME, AGENT_NAMESPACE))["metadata"]["uid"]
    assert held.identity.identity == uid


async def test_one_without_a_holder_is_taken(managed: EmbeddedHub) -> None:
    """As older agents left it."""
    metadata = {"name": NAME, "namespace": AGENT_NAMESPACE}
    await managed.create(LEASE, {"metadata": metadata, "spec": {"leaseDurationSeconds": 60}})
    assert await holding(managed).renew() == ""
    assert (await lease(managed))["holderIdentity"] == "pod-a"


async def test_a_refusal_is_told_and_leaves_the_agent_as_it_was(managed: EmbeddedHub) -> None:
    held = holding(Faulty(managed, lambda _: Fault(Forbidden("no right"))))
    assert await held.renew() == "Forbidden: no right"
    assert held.decided.is_set()
    assert held.identity.standby_failure() is None


@pytest.mark.virtual_time
async def test_a_second_agent_stands_by_until_the_first_one_is_gone(managed: EmbeddedHub) -> None:
    first, second = holding(managed), holding(managed, "pod-b")
    async with kept(first):
        async with kept(second):
            await asyncio.sleep(600)
            refused = second.identity.standby_failure()
            assert refused is not None
            assert "pod-a" in refused.message
            assert first.identity.standby_failure() is None
            assert second.identity.identity == first.identity.identity
        assert (await lease(managed))["holderIdentity"] == "pod-a"
    assert await second.renew() == ""
    assert second.identity.standby_failure() is None


@pytest.mark.virtual_time
async def test_a_holder_that_died_is_followed_when_its_lease_is_over(managed: EmbeddedHub) -> None:
    """However their clocks differ."""
    await holding(managed).renew()
    second = holding(managed, "pod-b", START - timedelta(days=1))
    async with kept(second):
        await asyncio.sleep(59)
        assert second.identity.rival == "pod-a"
        await asyncio.sleep(22)
        assert second.identity.rival == ""


@pytest.mark.virtual_time
async def test_who_stands_by_and_sees_no_renewal_any_more_works_as_if_alone(
    managed: EmbeddedHub,
) -> None:
    """Else a cluster whose Lease can't be read would have no scores for good."""
    await holding(managed).renew()
    refusing = False
    second = holding(Faulty(managed, lambda _: Fault(Forbidden("no")) if refusing else None), "b")
    async with kept(second):
        refusing = True
        await asyncio.sleep(59)
        assert second.identity.rival == "pod-a"
        await asyncio.sleep(22)
        assert second.identity.rival == ""
        await holding(managed).renew()
        refusing = False
        await asyncio.sleep(20)
        assert second.identity.rival == "pod-a"


async def test_one_that_is_made_anew_leaves_the_agent_its_scores(managed: EmbeddedHub) -> None:
    held = holding(managed)
    await held.renew()
    score = placement_score("cluster1", "score")
    score["status"] = {
        "validUntil": "2026-01-01T13:00:00Z",
        "conditions": [{"type": "Publisher", "message": held.identity.identity}],
    }
    await managed.delete(LEASE, NAME, AGENT_NAMESPACE)
    while await held.renew():
        pass
    uid = (await managed.get(LEASE, NAME, AGENT_NAMESPACE))["metadata"]["uid"]
    assert held.identity.identity == uid
    assert held.identity.foreign_failure(score, START) is None
    assert PublisherIdentity(uid).foreign_failure(score, START) is not None


@pytest.mark.virtual_time
async def test_of_two_that_start_at_the_same_moment_one_holds_it(managed: EmbeddedHub) -> None:
    both = [holding(managed, name) for name in ("pod-a", "pod-b")]
    assert await asyncio.gather(*(one.renew() for one in both)) == ["", ""]
    assert sorted(bool(one.identity.rival) for one in both) == [False, True]


@pytest.mark.virtual_time
async def test_an_hour_costs_three_writes_a_minute_and_none_until_the_agent_is_ready() -> None:
    loop = asyncio.get_running_loop()
    managed = EmbeddedHub()
    await managed.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    counting = Counting(managed)
    keeping = asyncio.create_task(holding(counting).keep(lambda: loop.time() > 600))
    await asyncio.sleep(600)
    assert counting.writes == 0
    await asyncio.sleep(3600)
    assert 180 <= counting.writes <= 182
    renewed = datetime.fromisoformat((await lease(managed))["renewTime"])
    assert START + timedelta(seconds=loop.time()) - renewed <= timedelta(seconds=20)
    keeping.cancel()
