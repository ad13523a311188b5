"""The add-on's Lease on the managed cluster."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dsf.agent import addon_lease
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import LEASE, NAMESPACE
from dsf.kube.port import Kube
from dsf.kube.wrappers import Counting, Fault, Faulty
from tests.agent.conftest import AGENT_NAMESPACE

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAME = "dynamic-scoring-framework"


async def lease(kube: Kube) -> dict[str, Any]:
    found = await kube.get(LEASE, NAME, AGENT_NAMESPACE)
    return dict(found["spec"])


async def test_it_is_created_and_then_renewed(managed: EmbeddedHub) -> None:
    for seconds in (0, 60.25):
        now = START + timedelta(seconds=seconds)
        assert await addon_lease.renew(managed, AGENT_NAMESPACE, now) == ""
    found = await lease(managed)
    assert found["renewTime"] == "2026-01-01T12:01:00.250000Z"
    assert found["leaseDurationSeconds"] == 60


async def test_what_another_client_wrote_into_it_stays(managed: EmbeddedHub) -> None:
    await addon_lease.renew(managed, AGENT_NAMESPACE, START)
    await managed.patch(LEASE, NAME, {"spec": {"holderIdentity": "x"}}, AGENT_NAMESPACE)
    await addon_lease.renew(managed, AGENT_NAMESPACE, START)
    assert (await lease(managed))["holderIdentity"] == "x"


async def test_a_refusal_is_told(managed: EmbeddedHub) -> None:
    refusing = Faulty(managed, lambda _: Fault(Forbidden("no right")))
    error = await addon_lease.renew(refusing, AGENT_NAMESPACE, START)
    assert error == "Forbidden: no right"


@pytest.mark.virtual_time
async def test_an_hour_costs_one_write_a_minute_and_none_until_the_agent_is_ready() -> None:
    loop = asyncio.get_running_loop()
    managed = EmbeddedHub()
    await managed.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    counting = Counting(managed)
    keeping = asyncio.create_task(
        addon_lease.keep(
            counting,
            AGENT_NAMESPACE,
            ready=lambda: loop.time() > 600,
            now=lambda: START + timedelta(seconds=loop.time()),
        )
    )
    await asyncio.sleep(600)
    assert counting.writes == 0
    await asyncio.sleep(3600)
    assert 60 <= counting.writes <= 62
    renewed = datetime.fromisoformat((await lease(managed))["renewTime"])
    assert START + timedelta(seconds=loop.time()) - renewed <= timedelta(seconds=60)
    keeping.cancel()
