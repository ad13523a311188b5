"""The golden scenario on an embedded hub, and the service on a loopback socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import dsf.sim
from dsf.api.names import HUB_NAMESPACE
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists
from dsf.kube.kinds import KINDS, NAMESPACE, PLACEMENT, PLACEMENT_BINDING
from dsf.kube.port import Kube, Object
from mcp_server.app import create_service_app
from mcp_server.confirmation import WhenClientCannotAsk
from optimizer.api.serving import listen, serve, url
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.reviewing_hub import AccessTable, ReviewingHub

SCENARIO = Path(dsf.sim.__file__).parent / "scenario"
PERFORMANCE = "example-performance-score"
POWER = "example-powerconsumption-score"
NAMESPACES = ("default", "worker01", "worker02")

_BY_KIND = {kind.kind: kind for kind in KINDS}


def request(score: str = PERFORMANCE) -> dict[str, Any]:
    """The development guide's request, with another preference."""
    params: dict[str, Any] = json.loads((SCENARIO / "params.json").read_text())
    params["preference"]["addonPlacementScore"] = score
    return params


def wish(score: str = PERFORMANCE, **changes: Any) -> dict[str, Any]:
    """Arguments of plan_placement: the guide's request, with other fields."""
    return {"request": {**request(score), **changes}}


async def scenario_hub(
    access: AccessTable | None = None, now: Callable[[], datetime] = utc_now
) -> EmbeddedHub:
    hub = ReviewingHub(access=access or AccessTable(), now=now)
    for name in (HUB_NAMESPACE, *NAMESPACES):
        await put(hub, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for obj in _scenario():
        await put(hub, obj)
    return hub


@cache
def _scenario() -> list[Object]:
    """The scenario's objects, which a hub copies when it stores them."""
    return [
        obj
        for path in sorted(SCENARIO.rglob("*.yaml"))
        for obj in yaml.safe_load_all(path.read_text())
    ]


async def put(hub: EmbeddedHub, obj: Object) -> None:
    kind = _BY_KIND[obj["kind"]]
    try:
        created = await hub.create(kind, obj)
    except AlreadyExists:
        assert kind is NAMESPACE
        return
    if "status" in obj:
        await hub.update(kind, {**created, "status": obj["status"]}, subresource="status")


async def generated(hub: Kube) -> list[str]:
    """The names of all Placements and PlacementBindings."""
    lists = [await hub.list(kind, "default") for kind in (PLACEMENT, PLACEMENT_BINDING)]
    return sorted(obj["metadata"]["name"] for found in lists for obj in found.items)


@dataclass(frozen=True)
class Service:
    """A running service: its hub, and where it answers."""

    hub: EmbeddedHub
    optimizer: Optimizer
    url: str

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"


@asynccontextmanager
async def serving(
    *,
    read_only: bool = True,
    allowed_hosts: tuple[str, ...] = (),
    when_client_cannot_ask: WhenClientCannotAsk = "digest",
    through: Callable[[Kube], Kube] = lambda kube: kube,
) -> AsyncIterator[Service]:
    """Serve the scenario; `through` may put something between the optimizer and the hub."""
    hub = await scenario_hub()
    options = {"allowed_hosts": allowed_hosts, "when_client_cannot_ask": when_client_cannot_ask}
    optimizer = Optimizer(through(hub), now=utc_now)
    async with serving_hub(hub, optimizer, read_only=read_only, **options) as service:
        yield service


@asynccontextmanager
async def serving_hub(
    hub: EmbeddedHub, optimizer: Optimizer, **options: Any
) -> AsyncIterator[Service]:
    """Serve an optimizer of a hub; `options` as create_service_app takes them."""
    app = create_service_app(optimizer, **options)
    with listen("127.0.0.1", 0) as listener:
        task = asyncio.create_task(serve(app, listener))
        try:
            yield Service(hub, optimizer, url(listener))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
