"""GET /fleet: the matrix over HTTP, unchanged fleets, rights, and hubs that have nothing."""

import httpx

from dsf.kube import kinds
from dsf.kube.access_reviews import right
from dsf.kube.embedded import EmbeddedHub
from optimizer.operations.access.rights import fleet_rights
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.api.test_app import problem
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER
from tests.optimizer.operations.test_recorded_plans import client


async def test_the_fleet_is_one_document() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        found = (await http.get("/fleet?namespace=default")).json()
    assert [item["name"] for item in found["clusters"]] == ["worker01", "worker02"]
    assert [item["name"] for item in found["scores"]] == ["performance", "power"]
    assert all(len(item["enforced"]) == 1 for item in found["clusters"])
    assert all(len(column["values"]) == 2 for column in found["scores"][0]["columns"])


async def test_an_unchanged_fleet_is_not_sent_again() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        first = await http.get("/fleet")
        again = await http.get("/fleet", headers={"If-None-Match": first.headers["etag"]})
        await http.post("/optimize", json=body())
        changed = await http.get("/fleet", headers={"If-None-Match": first.headers["etag"]})
    assert first.headers["content-encoding"] == "gzip"
    assert (again.status_code, again.content) == (304, b"")
    assert changed.status_code == 200


async def test_a_client_that_accepts_no_compression_gets_none() -> None:
    async with client(await hub_of()) as http:
        found = await http.get("/fleet", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in found.headers
    assert found.json()["namespace"] == "default"


async def test_an_empty_hub_has_an_empty_fleet() -> None:
    async with client(EmbeddedHub(now=lambda: NOW)) as http:
        found = (await http.get("/fleet")).json()
        misspelt = await http.get("/fleet?name=default")
    assert [found[name] for name in ("clusters", "scores", "workloads", "findings")] == [[]] * 4
    problem(misspelt, 422, "InvalidField")


async def test_who_sees_the_fleet_and_its_scorers_has_the_rights_to_list_them() -> None:
    describing = right("list", kinds.DYNAMIC_SCORER)
    rights = {
        READER.name: [*fleet_rights("default")],
        WRITER.name: [*fleet_rights("default"), describing],
    }
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    spec = {"description": "-", "configURL": "http://scorer/config", "configSyncMode": "Full"}
    scorer = {"apiVersion": kinds.DYNAMIC_SCORER.api_version, "kind": "DynamicScorer"}
    metadata = {"name": "power", "namespace": "default"}
    await hub.create(kinds.DYNAMIC_SCORER, {**scorer, "metadata": metadata, "spec": spec})
    async with client(hub, checked=True) as http:

        async def asked(token: str, namespace: str = "default") -> httpx.Response:
            bearer = {"Authorization": f"Bearer {token}"} if token else {}
            return await http.get(f"/fleet?namespace={namespace}", headers=bearer)

        problem(await asked(""), 401, "Unauthorized")
        missing = problem(await asked("token-of-stranger"), 403, "Forbidden")["detail"]
        problem(await asked("token-of-reader", "other"), 403, "Forbidden")
        seen = [(await asked(f"token-of-{name}")).json() for name in ("reader", "writer")]
    assert "list addonplacementscores" in missing
    assert [[item["name"] for item in found["scorers"]] for found in seen] == [[], ["power"]]
