"""The fleet of a watched hub: made again only after a change, with its age; and its events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import list_objects
from optimizer.api.app import create_app
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.fleet import follow_fleet
from optimizer.service.hub import fleet_matrices
from optimizer.service.hub.watched_hub import WATCHED
from optimizer.service.optimizer import Optimizer
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of
from tests.optimizer.service.hub.test_watched_hub import plain


@asynccontextmanager
async def served(hub: EmbeddedHub) -> AsyncIterator[tuple[httpx.AsyncClient, Counting, Optimizer]]:
    """An app whose hub is watched, once all is in memory."""
    counting = Counting(hub)
    optimizer = Optimizer(counting, now=lambda: NOW)
    app = create_app(optimizer, read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):

        async def all_is_watched() -> bool:
            answer = await http.get("/fleet")
            return optimizer.hub.tells_all and "age" in answer.headers

        await eventually(all_is_watched)
        yield http, counting, optimizer


def of_worker01(answer: httpx.Response) -> list[float]:
    columns = answer.json()["scores"][0]["columns"]
    return [column["values"][0] for column in columns if column["values"][0] is not None]


async def set_score(hub: EmbeddedHub, value: int) -> None:
    status = {"status": {"scores": [{"name": "app01;all", "value": value}]}}
    await hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE, "performance", status, "worker01", subresource="status"
    )


async def test_an_unchanged_fleet_is_not_read_again() -> None:
    async with served(await hub_of()) as (http, counting, _):
        first = await http.get("/fleet")
        counting.calls.clear()
        answers = [await http.get("/fleet") for _ in range(5)]
        assert not [call for call in counting.calls if call[0] == "list"]
        assert {answer.content for answer in answers} == {first.content}
        assert all(int(answer.headers["age"]) <= 90 for answer in answers)


async def test_a_change_is_shown_and_nothing_is_read_for_it() -> None:
    hub = await hub_of()
    async with served(hub) as (http, counting, _):
        counting.calls.clear()
        await set_score(hub, 7)

        async def shown() -> bool:
            return of_worker01(await http.get("/fleet")) == [7.0]

        await eventually(shown)
        assert not [call for call in counting.calls if call[0] == "list"]


async def test_what_was_applied_is_in_the_next_answer_and_nobody_changes_the_copy() -> None:
    hub = await hub_of()
    async with served(hub) as (http, _, optimizer):
        for score in ("performance", "power", "performance"):
            applied = await http.post("/optimize", json=body(score))
            assert applied.status_code == 200, applied.text
            found = (await http.get("/fleet")).json()
            assert all(len(item["enforced"]) == 1 for item in found["clusters"])
            enforced = {item["enforced"][0]["policy"] for item in found["clusters"]}
            assert all(("3g" if score == "performance" else "2g") in name for name in enforced)
            status = (await http.get("/placements/status?namespace=default")).json()
            assert {item["reason"] for item in status["not_compared"]} == set()
        reset = await http.post("/reset", json={"namespace": "default"})
        assert reset.status_code == 200
        found = (await http.get("/fleet")).json()
        assert not any(item["enforced"] for item in found["clusters"])
        for kind, labels in WATCHED.items():
            kept = await list_objects(optimizer.hub, kind, labels=labels)
            assert plain(kept) == plain(await list_objects(hub, kind, labels=labels))


async def test_the_stream_tells_of_the_fleet_now_and_of_each_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_matrices, "PAUSE_SECONDS", 0.01)
    hub = await hub_of()
    async with served(hub) as (_, counting, optimizer):
        found = await follow_fleet(AuthorizedOptimizer(optimizer))
        assert not isinstance(found, Exception)
        async with aclosing(found) as changes:  # type: ignore[type-var]
            first = await anext(changes)
            counting.calls.clear()
            waiting = asyncio.ensure_future(anext(changes))
            done, _ = await asyncio.wait({waiting}, timeout=1)
            assert not done
            assert not counting.calls["list", kinds.ADD_ON_PLACEMENT_SCORE.resource]
            await set_score(hub, 9)
            assert (await waiting).scores != first.scores


async def test_nobody_hears_of_a_namespace_that_is_none() -> None:
    hub = await hub_of()
    async with served(hub) as (http, _, _):
        missing = await http.get("/fleet/events?namespace=nowhere")
    assert missing.status_code == 404
