"""The server stops: open requests end, or are cut off and release what they hold."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

from dsf.kube.kinds import LEASE, PLACEMENT, Kind
from dsf.kube.port import Object
from optimizer.api.app import create_app
from optimizer.api.serving import listen, serve, url
from optimizer.service.namespace_lease import LEASE_NAME
from optimizer.service.optimizer import Optimizer
from tests.eventually import eventually
from tests.kube_wrappers.wrapper import Wrapper
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of


class Hanging(Wrapper):
    """A hub that never answers the creation of a Placement, and other calls after a while."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        await asyncio.sleep(0.2)
        return await super().get(kind, name, namespace)

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        if kind == PLACEMENT:
            await asyncio.Event().wait()
        return await super().create(kind, obj)


async def test_a_request_that_is_cut_off_releases_the_lease() -> None:
    hub = await hub_of()
    app = create_app(Optimizer(Hanging(hub), now=lambda: NOW), read_only=False)
    listener = listen("127.0.0.1", 0)
    serving = asyncio.create_task(serve(app, listener, shutdown_seconds=1))

    async def holder() -> str:
        (lease,) = (await hub.list(LEASE, "default")).items or [{}]
        return str(lease.get("spec", {}).get("holderIdentity", ""))

    async with httpx.AsyncClient(base_url=url(listener), timeout=60, trust_env=False) as client:
        asked = asyncio.create_task(client.post("/optimize", json=body("power")))
        await eventually(holder)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert (await hub.get(LEASE, LEASE_NAME, "default"))["spec"]["holderIdentity"] == ""
        await asyncio.gather(asked, return_exceptions=True)
