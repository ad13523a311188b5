"""Servers die after each of their writes while they apply a plan, and while they roll it back."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from dsf.kube.client.connect import connect
from optimizer.plan.plan import Plan
from optimizer.wire.request import RollbackRequest
from optimizer.wire.result import Applied
from tests.optimizer.service.test_namespace_lease import Killed, Mortal

from .test_rollout import objects, place, request, server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dsf.kube.port import Kube
    from optimizer.service.optimizer import Optimizer
    from optimizer.wire.request_problem import RequestProblem

    from .harness.hub import Hub

    Asked = Callable[[Optimizer], Awaitable[Plan | RequestProblem]]

__all__ = ["place"]

EACH = 1 if "FIRE_KILLS" in os.environ else 5
"""Of how many writes one is the last of a server; `make fire-hub` tries all."""

pytestmark = pytest.mark.usefixtures("policies", "placement_plans")


@pytest.mark.fire(
    "after a kill at any write the next server makes one whole plan",
    "servers killed while they apply and roll back, on a real hub",
)
def test_what_a_killed_server_left_is_made_whole(
    hub: Hub, place: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("count", asyncio.run(_kills(hub, place)))


async def _kills(hub: Hub, namespace: str) -> int:
    """Return how many servers were killed until one came to its end."""
    kills = 0
    async with connect(hub.admin_kubeconfig) as kube:
        for writes in range(1, 200, EACH):
            first = await _applied(server(kube), _plan_of(namespace, "rollout-performance"))
            performance = await objects(kube, namespace)
            to_power = _plan_of(namespace, "rollout-power")
            power = await _wanted(kube, to_power)
            died = await _killed(kube, to_power, writes)
            await _applied(server(kube), to_power)
            assert await objects(kube, namespace) == power
            asked = RollbackRequest(
                namespace=namespace, to_revision=int(first.record.rpartition("-")[2])
            )
            died += await _killed(kube, lambda service, to=asked: service.plan_rollback(to), writes)
            await _applied(server(kube), lambda service, to=asked: service.plan_rollback(to))
            assert await objects(kube, namespace) == performance
            if not died:
                return kills
            kills += died
    pytest.fail("the servers were killed at every write and never ended")


def _plan_of(namespace: str, score: str) -> Asked:
    return lambda service: service.plan(request(namespace, score))


async def _wanted(kube: Kube, asked: Asked) -> dict[str, object]:
    """Return what a plan wants of the objects that `objects` reads."""
    plan = await asked(server(kube))
    assert isinstance(plan, Plan)
    return {
        item["metadata"]["name"]: item.get("subjects") or item["spec"]
        for item in plan.manifests
        if item["kind"] in ("Placement", "PlacementBinding")
    }


async def _applied(service: Optimizer, asked: Asked) -> Applied:
    plan = await asked(service)
    assert isinstance(plan, Plan), plan
    done = await service.apply(plan)
    assert isinstance(done, Applied), done
    assert done.failed == ()
    return done


async def _killed(kube: Kube, asked: Asked, writes: int) -> bool:
    """Apply in a server that is killed after some writes; return whether it was."""
    plan = await asked(server(kube))
    assert isinstance(plan, Plan), plan
    mortal = Mortal(kube, writes)
    with contextlib.suppress(Killed, BaseExceptionGroup):
        await server(mortal).apply(plan)
    return mortal.dead
