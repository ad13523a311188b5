"""Exclusive sections on an embedded hub in virtual time."""

import asyncio

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Unreachable
from dsf.kube.kinds import LEASE, NAMESPACE
from dsf.runtime.leader_election import HeldLease, Occupied, run_exclusively
from dsf.runtime.lease import LeaderElectionConfig
from tests.kube_wrappers.fault_injection import Fault, Faulty

pytestmark = pytest.mark.virtual_time

PATIENCE = 16.0


async def hub() -> EmbeddedHub:
    made = EmbeddedHub()
    await made.create(
        NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    )
    return made


def lease(kube: EmbeddedHub | Faulty, identity: str) -> HeldLease:
    return HeldLease(kube, LeaderElectionConfig("writer", "ns", identity))


async def seconds(duration: float, identity: str = "") -> str:
    await asyncio.sleep(duration)
    return identity


async def test_short_works_follow_each_other() -> None:
    kube, running = await hub(), list[str]()

    async def work(identity: str) -> str:
        running.append(identity)
        await asyncio.sleep(1)
        assert running == [identity]
        running.remove(identity)
        return identity

    done = await asyncio.gather(
        *(
            run_exclusively(lease(kube, name), lambda name=name: work(name), patience_seconds=60)
            for name in "abc"
        )
    )
    assert done == ["a", "b", "c"]


async def test_a_holder_that_renews_is_not_waited_for() -> None:
    kube = await hub()
    long = asyncio.create_task(
        run_exclusively(lease(kube, "a"), lambda: seconds(100), patience_seconds=PATIENCE)
    )
    await asyncio.sleep(1)
    asked = asyncio.get_running_loop().time()
    second = await run_exclusively(lease(kube, "b"), lambda: seconds(1), patience_seconds=PATIENCE)
    assert isinstance(second, Occupied)
    assert second.lease["spec"]["holderIdentity"] == "a"
    assert asyncio.get_running_loop().time() - asked < 5
    long.cancel()
    await asyncio.gather(long, return_exceptions=True)


async def test_the_lease_of_a_process_that_died_is_taken_once_it_has_expired() -> None:
    kube = await hub()
    assert await lease(kube, "dead").hold()
    asked = asyncio.get_running_loop().time()
    done = await run_exclusively(
        lease(kube, "b"), lambda: seconds(1, "b"), patience_seconds=PATIENCE
    )
    assert done == "b"
    assert 15 <= asyncio.get_running_loop().time() - asked <= 17


async def test_work_without_its_lease_is_cancelled() -> None:
    kube = await hub()
    away = False
    faulty = Faulty(kube, lambda _: Fault(Unreachable("away")) if away else None)
    finished = False

    async def work() -> None:
        nonlocal away, finished
        away = True
        await asyncio.sleep(100)
        finished = True

    outcome = await run_exclusively(lease(faulty, "a"), work, patience_seconds=PATIENCE)
    assert isinstance(outcome, Occupied)
    assert not finished


async def test_the_lease_is_given_back() -> None:
    kube = await hub()
    await run_exclusively(lease(kube, "a"), lambda: seconds(1), patience_seconds=PATIENCE)
    assert (await kube.get(LEASE, "writer", "ns"))["spec"]["holderIdentity"] == ""


async def test_an_error_of_the_work_is_raised_and_the_lease_given_back() -> None:
    kube = await hub()

    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_exclusively(lease(kube, "a"), work, patience_seconds=PATIENCE)
    assert (await kube.get(LEASE, "writer", "ns"))["spec"]["holderIdentity"] == ""
