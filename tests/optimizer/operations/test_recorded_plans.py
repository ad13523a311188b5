"""Recorded plans and rollback over HTTP: what is shown, to whom, and what is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from dsf.kube import kinds
from dsf.kube.access_reviews import right
from dsf.kube.port import Kube
from optimizer.api.app import create_app
from optimizer.domain.settings import DEFAULTS, OptimizerSettings
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.rights import record_rights
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import bound, hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER, reads, writes

WHERE = {"namespace": "default"}


@asynccontextmanager
async def client(
    hub: Kube, settings: OptimizerSettings = DEFAULTS, *, checked: bool = False
) -> AsyncIterator[httpx.AsyncClient]:
    access = Access(DelegatedAuth(hub)) if checked else None
    app = create_app(Optimizer(hub, settings, now=lambda: NOW), access=access, read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def test_plans_are_listed_shown_and_restored() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        empty = (await http.get("/plans", params=WHERE)).json()
        nothing = await http.post("/rollback", json={**WHERE, "workload": "app01"})
        first = (await http.post("/optimize", json=body())).json()
        await http.post("/optimize", json=body("power"))
        listed = (await http.get("/plans", params=WHERE)).json()
        shown = (await http.get(f"/plans/{first['digest']}", params=WHERE)).json()
        looked = await http.post("/rollback", json={**WHERE, "dryRun": True})
        untouched = await bound(hub)
        done = await http.post("/rollback", json=WHERE)
        again = (await http.get("/plans", params=WHERE)).json()

    assert empty == {"namespace": "default", "items": [], "issues": []}
    unknown = "no plan of optimization default in namespace default is recorded"
    assert nothing.json()["detail"] == unknown
    assert first["record"] == "default-1"
    assert [(item["revision"], item["phase"]) for item in listed["items"]] == [
        (2, "Applied"),
        (1, "Superseded"),
    ]
    assert [(item["objective"], item["gap"]) for item in listed["items"]] == [(170, 0), (115, 0)]
    assert listed["items"][1]["message"] == "revision 2 was applied"
    assert shown["request"]["preference"]["addonPlacementScore"] == "performance"
    assert {"cluster": "worker01", "policy": "3g.48gb-worker01"} in shown["policies"]
    assert len(shown["objects"]) == len(shown["changes"]) == 6
    assert shown["scores"] == 2

    assert (looked.status_code, looked.json()["applied"]) == (200, False)
    assert untouched == {"2g.24gb-worker01", "2g.24gb-worker02"}
    assert (done.status_code, done.json()["applied"]) == (200, True)
    assert (done.json()["from_revision"], done.json()["to_revision"]) == (2, 1)
    assert done.json()["output_yaml"] == first["output_yaml"]
    assert await bound(hub) == {"3g.48gb-worker01", "3g.48gb-worker02"}
    assert [item["phase"] for item in again["items"]] == ["Applied", "RolledBack", "Superseded"]
    assert again["items"][0]["restored_revision"] == 1


async def test_a_rollback_takes_the_only_optimization_and_asks_which_of_several() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        for score in ("performance", "power"):
            asked = {**body(score, ["worker01"], ["mwrs-app01"]), "optimization": "batch"}
            await http.post("/optimize", json=asked)
        looked = await http.post("/rollback", json={**WHERE, "dryRun": True})
        asked = {**body("power", ["worker02"], ["mwrs-app02"]), "optimization": "other"}
        await http.post("/optimize", json=asked)
        unclear = await http.post("/rollback", json=WHERE)
        plans = (await http.get("/plans", params=WHERE)).json()["items"]
        first = next(item["digest"] for item in plans if item["revision"] == 1)
        by_digest = await http.post("/rollback", json={**WHERE, "digest": first})
    assert (looked.json()["optimization"], looked.json()["to_revision"]) == ("batch", 1)
    assert (unclear.status_code, unclear.json()["detail"]) == (
        422,
        "optimization: namespace default has the optimizations batch, other: name one",
    )
    assert unclear.json()["errors"][0]["available"] == ["batch", "other"]
    assert by_digest.json()["optimization"] == "batch"


async def test_what_is_not_recorded_or_not_possible_is_a_problem() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        unknown = await http.get(f"/plans/{'0' * 64}", params=WHERE)
        revision = await http.post("/rollback", json={**WHERE, "toRevision": 9})
        alone = await http.post("/rollback", json=WHERE)
        both = await http.post("/rollback", json={**WHERE, "toRevision": 1, "digest": "ab"})
        misspelt = await http.post("/rollback", json={**WHERE, "revision": 1})
        unfiltered = await http.get("/plans")
    assert [(item.status_code, item.json()["reason"]) for item in (unknown, revision, alone)] == [
        (404, "UnknownPlan"),
        (404, "UnknownPlan"),
        (409, "NoEarlierPlan"),
    ]
    assert [item.status_code for item in (both, misspelt, unfiltered)] == [422, 422, 422]
    assert "toRevision" in misspelt.text


async def test_a_refused_rollback_names_the_differences() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        await http.post("/optimize", json=body("power"))
        await hub.delete(kinds.POLICY, "3g.48gb-worker01", "default")
        refused = await http.post("/rollback", json=WHERE)
    assert (refused.status_code, refused.json()["reason"]) == (409, "RollbackRefused")
    (error,) = refused.json()["errors"]
    assert "3g.48gb-worker01" in error["message"]


@pytest.mark.parametrize("user", ["reader", "writer"])
async def test_plans_are_shown_to_who_may_read_records_and_what_they_generated(user: str) -> None:
    rights = {
        READER.name: reads("default"),
        WRITER.name: [*reads("default"), *writes("default"), *record_rights("default")],
    }
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    allowed = user == "writer"
    async with client(hub, checked=True) as http:
        writer = {"Authorization": "Bearer token-of-writer"}
        applied = (await http.post("/optimize", json=body(), headers=writer)).json()
        http.headers["Authorization"] = f"Bearer token-of-{user}"
        answers = [
            await http.get("/plans", params=WHERE),
            await http.get(f"/plans/{applied['digest']}", params=WHERE),
            await http.post("/rollback", json={**WHERE, "toRevision": 1, "dryRun": True}),
        ]
        nobody = await http.get("/plans", params=WHERE, headers={"Authorization": ""})
    assert [item.status_code for item in answers] == [200 if allowed else 403] * 3
    assert nobody.status_code == 401
    if allowed:
        assert answers[0].json()["items"][0]["requested_by"] == WRITER.name
    else:
        missing = right("list", kinds.PLACEMENT_PLAN, "default")
        assert str(missing) in answers[0].json()["detail"]


async def test_who_may_read_and_not_write_looks_at_a_rollback_and_does_none() -> None:
    rights = {READER.name: [*reads("default"), *record_rights("default")]}
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        await http.post("/optimize", json=body("power"))
    async with client(hub, checked=True) as http:
        http.headers["Authorization"] = "Bearer token-of-reader"
        looked = await http.post("/rollback", json={**WHERE, "dryRun": True})
        refused = await http.post("/rollback", json=WHERE)
    assert (looked.status_code, refused.status_code) == (200, 403)
    assert await bound(hub) == {"2g.24gb-worker01", "2g.24gb-worker02"}
