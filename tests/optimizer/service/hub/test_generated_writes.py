"""Placements wait for a policy framework that has not noticed yet that their bindings are gone."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dsf.kube import kinds
from dsf.kube.changes import Delete
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from optimizer.plan.plan import Plan
from optimizer.service.hub.generated_writes import NOTICED_SECONDS, write_generated
from optimizer.service.optimizer import Optimizer
from optimizer.wire.result import Applied, ResetResult
from tests.kube_wrappers.wrapper import Wrapper
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import hub_of, names

BUSY_SECONDS = 0.3


BINDING: dict[str, Any] = {
    "metadata": {"name": "binding", "namespace": "default"},
    "placementRef": {
        "apiGroup": "cluster.open-cluster-management.io",
        "kind": "Placement",
        "name": "placement",
    },
    "subjects": [
        {
            "apiGroup": "policy.open-cluster-management.io",
            "kind": "Policy",
            "name": "3g.48gb-worker01",
        }
    ],
}


class Propagated(Wrapper):
    """A hub whose policy framework reports in the status of policies what it has propagated.

    Of a binding that is deleted it hears after BUSY_SECONDS. Then it needs the Placement: without
    one, the policy stays on its clusters. With `stopped` it hears nothing.
    """

    def __init__(self, hub: EmbeddedHub, *, stopped: bool = False) -> None:
        super().__init__(hub)
        self.stayed = list[str]()
        self._hub = hub
        self._stopped = stopped
        self._hearing = set[asyncio.Task[None]]()

    async def propagate(self) -> None:
        for binding in (await self._hub.list(kinds.PLACEMENT_BINDING)).items:
            for subject in binding["subjects"]:
                entry = {"placementBinding": binding["metadata"]["name"]}
                await self._tell(subject["name"], [entry])

    async def delete(self, kind: Kind, name: str, *args: Any, **kwargs: Any) -> None:
        if kind == kinds.PLACEMENT_BINDING and not self._stopped:
            binding = await self._hub.get(kind, name, "default")
            self._hearing.add(asyncio.create_task(self._hear(binding)))
        await super().delete(kind, name, *args, **kwargs)

    async def _hear(self, binding: Any) -> None:
        await asyncio.sleep(BUSY_SECONDS)
        if binding["placementRef"]["name"] not in await names(self._hub, kinds.PLACEMENT):
            self.stayed.append(binding["metadata"]["name"])
        for subject in binding["subjects"]:
            await self._tell(subject["name"], [])

    async def _tell(self, policy: str, placement: list[dict[str, str]]) -> None:
        status = {"status": {"placement": placement}}
        await self._hub.patch(kinds.POLICY, policy, status, "default", subresource="status")


async def _replace(service: Optimizer) -> None:
    await _apply(service, "power")


async def _reset(service: Optimizer) -> None:
    done = await service.reset("default")
    assert isinstance(done, ResetResult)
    assert done.failed == ()


async def _apply(service: Optimizer, score: str) -> None:
    plan = await service.plan(request(score))
    assert isinstance(plan, Plan)
    done = await service.apply(plan)
    assert isinstance(done, Applied)
    assert done.failed == ()


@pytest.mark.parametrize("change", [_replace, _reset])
async def test_a_busy_policy_framework_removes_every_policy_that_is_bound_no_more(
    change: Callable[[Optimizer], Any],
) -> None:
    hub = await hub_of()
    kube = Propagated(hub)
    service = Optimizer(kube, now=lambda: NOW)
    await _apply(service, "performance")
    await kube.propagate()
    await change(service)
    await asyncio.sleep(2 * BUSY_SECONDS)
    assert kube.stayed == []


@pytest.mark.virtual_time
async def test_a_policy_framework_that_is_stopped_keeps_nobody_waiting_for_long() -> None:
    hub = await hub_of()
    placement = {"metadata": {"name": "placement", "namespace": "default"}, "spec": {}}
    await hub.create(kinds.PLACEMENT, placement)
    await hub.create(kinds.PLACEMENT_BINDING, BINDING)
    kube = Propagated(hub, stopped=True)
    await kube.propagate()
    started = asyncio.get_running_loop().time()
    removals = [
        Delete(kinds.PLACEMENT_BINDING, "binding", "default"),
        Delete(kinds.PLACEMENT, "placement", "default"),
    ]
    outcomes = await write_generated(kube, removals, reader=kube)
    assert [item.error for item in outcomes] == [None, None]
    waited = asyncio.get_running_loop().time() - started
    assert NOTICED_SECONDS - 0.1 < waited < NOTICED_SECONDS + 1
    assert await names(hub, kinds.PLACEMENT) == []
