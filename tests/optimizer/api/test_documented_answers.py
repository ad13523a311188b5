"""Each operation documents every answer that it gives, those of what stands before it included."""

from typing import Any

import httpx
import pytest

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from optimizer.api.app import MAX_BODY_BYTES, create_app
from optimizer.operations import fleet
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.service.optimizer import Optimizer
from tests.optimizer.api.test_app import client, problem
from tests.optimizer.build import NOW, obj
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import table

DOCUMENT: dict[str, Any] = create_app(Optimizer(EmbeddedHub(), now=lambda: NOW)).openapi()
OPERATIONS = [
    pytest.param(method.upper(), path, id=f"{method} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
]
WRITER = {"Authorization": "Bearer token-of-writer"}


def answers_of(method: str, path: str) -> set[str]:
    """The statuses that the OpenAPI document names."""
    return set(DOCUMENT["paths"][path][method.lower()]["responses"])


def filled(path: str) -> str:
    """A path of the OpenAPI document with a value for each parameter."""
    values = {"namespace": "default", "optimization": "default", "command": "pause"}
    return path.format(**values, digest="0" * 64)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_what_stands_before_an_operation_gives_documented_answers(
    method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "STREAM_SECONDS", 1.0)
    hub = await hub_of(access=table())
    access = Access(DelegatedAuth(hub))
    app = create_app(Optimizer(hub, now=lambda: NOW), access=access, requests_per_second=0.001)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:

        async def answer(headers: dict[str, str] = WRITER) -> str:
            return str((await http.request(method, filled(path), headers=headers)).status_code)

        given = {
            "host": await answer({"Host": "evil.example"}),
            "no host": await answer({"Host": "[::1]evil"}),
            "origin": await answer({"Origin": "https://evil.example"}),
            "body": await answer({**WRITER, "Content-Length": str(MAX_BODY_BYTES + 1)}),
            "token": await answer({}),
            "first": await answer(),
            "many": await answer(),
        }
    assert given["host"] == "421"
    assert set(given.values()) <= answers_of(method, path), given


async def test_an_object_of_somebody_else_in_the_way_is_a_documented_answer_of_a_dry_run() -> None:
    hub = await hub_of()
    await hub.create(kinds.PLACEMENT, obj(kinds.PLACEMENT, "app01-placement", "default", spec={}))
    async with client(hub) as http:
        asked = {"namespace": "default", "objective": {"performance": 1}}
        problem(await http.post("/plan", json=asked), 409, "NotGenerated")
    assert "409" in answers_of("post", "/plan")
