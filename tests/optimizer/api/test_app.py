"""The HTTP API, over ASGI and once over a real socket."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import httpx
import pytest
import yaml

from dsf.kube import kinds
from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Kube
from optimizer.api.app import MAX_BODY_BYTES, create_app
from optimizer.api.serving import listen, serve, url
from optimizer.operations.examples import OPTIMIZE_EXAMPLES
from optimizer.service.optimizer import Optimizer
from tests.optimizer.build import NOW, body, obj
from tests.optimizer.hubs import bound, hub_of, names
from tests.optimizer.neighbours import work_of

JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def client(kube: Kube | None = None) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Optimizer(kube or await hub_of(), now=lambda: NOW), read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://optimizer") as http:
        yield http


def problem(response: httpx.Response, status: int, reason: str) -> dict[str, Any]:
    """Check that a response is a problem, and return it."""
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert (response.status_code, found["status"], found["reason"]) == (status, status, reason)
    assert found["type"].startswith("urn:dynamic-scoring-framework:problem:")
    assert found["title"]
    assert found["detail"]
    return found


async def test_optimize_plans_and_applies() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        response = await http.post("/optimize", json=body())
    answer = response.json()
    assert response.status_code == 200
    assert (answer["status"], answer["objective_value"], answer["applied"]) == (
        "Optimal",
        115.0,
        True,
    )
    written = {item["metadata"]["name"] for item in yaml.safe_load_all(answer["output_yaml"])}
    assert written == {
        *await names(hub, kinds.PLACEMENT),
        *await names(hub, kinds.PLACEMENT_BINDING),
    }
    assert await bound(hub) == {"3g.48gb-worker01", "3g.48gb-worker02"}


@pytest.mark.parametrize(
    ("path", "extra"), [("/optimize?dry_run=true", {}), ("/optimize", {"dryRun": True})]
)
async def test_a_dry_run_writes_nothing(path: str, extra: dict[str, bool]) -> None:
    hub = await hub_of()
    async with client(hub) as http:
        answer = (await http.post(path, json={**body("power"), **extra})).json()
    assert (answer["objective_value"], answer["applied"], len(answer["changes"])) == (
        170.0,
        False,
        6,
    )
    assert await names(hub, kinds.PLACEMENT) == []


async def test_a_misspelt_dry_run_is_refused_before_anything_is_written() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        answer = await http.post("/optimize?dryrun=true", json=body())
        listed = await http.get("/addonplacementscores?cluster=worker01")
    assert problem(answer, 422, "InvalidField")["errors"] == [
        {"field": "dryrun", "message": "unknown field", "available": []}
    ]
    assert problem(listed, 422, "InvalidField")["errors"][0]["field"] == "cluster"
    assert await names(hub, kinds.PLACEMENT) == []


async def test_reset_deletes_what_was_generated() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        answer = (await http.post("/reset", json={"namespace": "default"})).json()
    assert (len(answer["deleted"]), answer["failed"]) == (6, [])
    assert await names(hub, kinds.PLACEMENT) == []


async def test_a_reset_says_what_goes_on_running_and_stops_it_if_asked() -> None:
    hub = await hub_of()
    await work_of(hub, "mwrs-app01", "worker01", "app01-placement")
    runs = [{"workload": "mwrs-app01", "clusters": ["worker01"]}]
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        left = (await http.post("/reset", json={"namespace": "default"})).json()
        assert (left["running"], left["stopping"]) == (runs, [])
        asked = {"namespace": "default", "stopWorkloads": True}
        stopped = (await http.post("/reset", json=asked)).json()
        assert (stopped["running"], stopped["stopping"]) == ([], runs)
    (placement,) = (await hub.list(kinds.PLACEMENT, "default")).items
    assert placement["metadata"]["name"] == "app01-placement"
    assert placement["spec"]["numberOfClusters"] == 0


ABOUT_A_NAMESPACE = (
    ("get", "/fleet"),
    ("get", "/placements/status"),
    ("get", "/plans"),
    ("get", "/rollouts"),
    ("post", "/reset"),
)


@pytest.mark.parametrize(("method", "path"), ABOUT_A_NAMESPACE)
async def test_an_empty_answer_tells_whether_the_namespace_exists(method: str, path: str) -> None:
    async def asked(http: httpx.AsyncClient, namespace: str) -> httpx.Response:
        named = {"namespace": namespace}
        if method == "get":
            return await http.get(path, params=named)
        return await http.post(path, json=named)

    async with client() as http:
        missing = problem(await asked(http, "nope"), 404, "UnknownNamespace")
        assert missing["detail"].startswith("the hub has no namespace nope")
        assert "404" in http_statuses(method, path)
        assert (await asked(http, "worker01")).status_code == 200


def http_statuses(method: str, path: str) -> set[str]:
    document = create_app(Optimizer(EmbeddedHub(), now=lambda: NOW)).openapi()
    return set(document["paths"][path][method]["responses"])


async def test_scores_are_listed() -> None:
    async with client() as http:
        every = (await http.get("/addonplacementscores")).json()["items"]
        one = (await http.get("/addonplacementscores?namespace=worker01&name=power")).json()
    assert [(item["cluster"], item["name"]) for item in every] == [
        ("worker01", "performance"),
        ("worker01", "power"),
        ("worker02", "performance"),
        ("worker02", "power"),
    ]
    assert {"name": "app01;all", "value": 20} in one["items"][0]["scores"]


async def test_the_placement_status_of_a_namespace_is_told() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        answer = await http.get("/placements/status?namespace=default")
        misspelt = await http.get("/placements/status?name=default")
        invalid = await http.get("/placements/status?namespace=a/../b")
    assert answer.status_code == 200
    rows = [(item["state"], item["since"]) for item in answer.json()["workloads"]]
    assert rows == [("Planned", None)] * 2
    problem(misspelt, 422, "InvalidField")
    problem(invalid, 422, "InvalidField")


async def test_names_that_do_not_exist_are_a_422_that_says_what_does() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        response = await http.post("/optimize", json=body("fastest", workloads=["mwrs-app09"]))
    errors = problem(response, 422, "UnknownName")["errors"]
    assert [(error["field"], error["available"]) for error in errors] == [
        ("targetWorkloads[0].name", ["mwrs-app01", "mwrs-app02"]),
        ("preference.addonPlacementScore", ["performance", "power"]),
    ]
    assert await names(hub, kinds.PLACEMENT) == []


async def test_a_placement_of_somebody_else_is_a_409() -> None:
    hub = await hub_of()
    await hub.create(kinds.PLACEMENT, obj(kinds.PLACEMENT, "app01-placement", "default", spec={}))
    async with client(hub) as http:
        found = problem(await http.post("/optimize", json=body()), 409, "NotGenerated")
    assert "Placement app01-placement" in found["detail"]


async def test_a_hub_that_is_gone_is_a_503(tmp_path: Any) -> None:
    with listen("127.0.0.1", 0) as taken:
        server = url(taken)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "gone", "cluster": {"server": server}}],
                "contexts": [{"name": "gone", "context": {"cluster": "gone"}}],
                "current-context": "gone",
            }
        )
    )
    async with connect(kubeconfig) as kube, client(kube) as http:
        for response in (
            await http.post("/optimize", json=body()),
            await http.post("/reset", json={"namespace": "default"}),
            await http.get("/addonplacementscores"),
            await http.get("/readyz"),
        ):
            problem(response, 503, "HubUnreachable")
            assert response.headers["retry-after"]
        assert (await http.get("/healthz")).text == "ok"


async def test_health() -> None:
    async with client() as http:
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/readyz")).status_code == 200


VALID = json.dumps(body()).encode()
HOSTILE = {
    "empty": b"",
    "no JSON": b"{",
    "NaN": b'{"namespace": NaN}',
    "infinity": VALID.replace(b'"default"', b"1e999"),
    "minus infinity": VALID.replace(b'"default"', b"-Infinity"),
    "many digits": VALID.replace(b'"default"', b"1" * 5_000),
    "a lone surrogate": VALID.replace(b'"default"', b'"\\ud800"'),
    "a lone surrogate as field": VALID.replace(b'"namespace"', b'"\\ud800"'),
    "a zero byte": VALID.replace(b'"default"', b'"\\u0000"'),
    "binary": b"\x00\xff\xfe" * 100,
    "deep nesting": b"[" * 200_000,
    "deep nesting in a field": b'{"namespace":' * 50_000,
    "a list": b"[]",
    "null": b"null",
    "a string": b'"x"',
    "a huge name": VALID.replace(b'"default"', b'"' + b"a" * 100_000 + b'"'),
    "a line break": VALID.replace(b'"default"', b'"a\\nkind: Secret"'),
    "an unknown field": VALID.replace(b"{", b'{"spec": 1, ', 1),
}


@pytest.mark.parametrize("path", ["/optimize", "/reset"])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.fire(
    "a hostile request is refused with a reason and writes nothing",
    "bodies to POST /optimize and /reset",
)
async def test_hostile_bodies_are_refused_in_order(path: str, name: str) -> None:
    async with client() as http:
        response = await http.post(path, content=HOSTILE[name], headers=JSON)
    assert response.status_code in {400, 422}
    problem(response, response.status_code, response.json()["reason"])


MEMBERS = 20_000
MANY_WRONG: dict[str, dict[str, Any]] = {
    "policies": {"clusters": [{"name": "c", "availablePolicies": [0] * 900}] * (MEMBERS // 900)},
    "workloads": {"targetWorkloads": [0] * MEMBERS},
    "fields": {f"f{index}": 0 for index in range(MEMBERS)},
    "unknown workloads": {"targetWorkloads": [{"name": f"w{i}"} for i in range(MEMBERS)]},
    "allocatable": {"clusters": [{"name": "c", "allocatable": [{"kid": 0}] * MEMBERS}]},
    "layouts": {
        "clusters": [{"name": "c", "availablePolicies": [{"name": "p", "layouts": [0] * MEMBERS}]}]
    },
    "spread": {"targetWorkloads": [{"name": "w", "spread": [{"kex": 0}] * MEMBERS}]},
    "clusters": {"targetWorkloads": [{"name": "w", "clusters": [0] * MEMBERS}]},
    "requests": {
        "targetWorkloads": [{"name": "w", "requests": {f"k{i}": "x y" for i in range(MEMBERS)}}]
    },
}


@pytest.mark.parametrize("name", MANY_WRONG)
async def test_an_answer_does_not_grow_with_what_is_wrong(name: str) -> None:
    async with client() as http:
        response = await http.post("/optimize", json={**body(), **MANY_WRONG[name]})
    assert response.status_code == 422
    assert len(response.content) < 50_000


@pytest.mark.parametrize(
    ("raw", "field", "said"),
    [
        ({"namespace": "default", "dryRun": True}, "dryRun", "unknown field"),
        ({"namespaces": "default"}, "namespaces", "unknown field; did you mean namespace?"),
    ],
)
async def test_a_reset_is_told_of_its_own_fields(
    raw: dict[str, Any], field: str, said: str
) -> None:
    async with client() as http:
        found = problem(await http.post("/reset", json=raw), 422, "InvalidField")
    assert {error["field"]: error["message"] for error in found["errors"]}[field] == said


async def test_a_field_error_names_the_field_and_not_what_was_sent() -> None:
    raw = {**body(), "clusters": [{"name": "NOT A NAME", "policies": []}]}
    async with client() as http:
        found = problem(await http.post("/optimize", json=raw), 422, "InvalidField")
    fields = {error["field"]: error["message"] for error in found["errors"]}
    assert set(fields) == {"clusters[0].name", "clusters[0].policies"}
    assert fields["clusters[0].policies"] == "unknown field; did you mean availablePolicies?"
    assert "NOT A NAME" not in json.dumps(found)


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"pareto": ["performance", "beauty"]}, "pareto"),
        (
            {"preference": {"addonPlacementScore": "p", "minimum": 2, "maximum": 1}},
            "preference.minimum",
        ),
        (
            {"preference": {"addonPlacementScore": "p", "minimumTrust": 1.5}},
            "preference.minimumTrust",
        ),
        (
            {"preference": {"addonPlacementScore": "p", "untrusted": "Refuse"}},
            "preference.untrusted",
        ),
        ({"clusters": [{"name": "c", "gpus": [{"model": "H100"}]}]}, "clusters[0].gpus[0].model"),
    ],
)
async def test_what_is_wrong_with_a_whole_object_points_at_its_member(
    extra: dict[str, Any], field: str
) -> None:
    async with client() as http:
        found = problem(await http.post("/optimize", json={**body(), **extra}), 422, "InvalidField")
    (error,) = found["errors"]
    assert error["field"] == field
    assert not error["message"].startswith(field.rpartition(".")[2])


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ([], 'clusters: must list at least 1; write [{"name": "name"}]'),
        ("worker01", 'clusters: must be a list; write [{"name": "name"}]'),
        (
            [{"name": "worker01", "availablePolicies": [{"name": "p"}] * 1001}],
            "clusters[0].availablePolicies: must list at most 1000; ask for fewer at once",
        ),
    ],
)
async def test_a_wrong_list_is_told_in_the_words_of_json(clusters: object, said: str) -> None:
    async with client() as http:
        response = await http.post("/optimize", json={**body(), "clusters": clusters})
    assert problem(response, 422, "InvalidField")["detail"] == said


async def test_a_body_of_another_type_is_refused_with_the_right_one() -> None:
    async with client() as http:
        response = await http.post("/optimize", content=VALID, headers={"Content-Type": "text/csv"})
    assert "application/json" in problem(response, 422, "InvalidField")["detail"]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_above_the_limit_is_refused(*, announced: bool) -> None:
    large = b" " * (MAX_BODY_BYTES + 1)

    async def unannounced() -> AsyncIterator[bytes]:
        yield large

    content = large if announced else unannounced()
    async with client() as http:
        response = await http.post("/optimize", content=content, headers=JSON)
    problem(response, 413, "BodyTooLarge")


async def test_unknown_paths_and_methods_are_problems() -> None:
    async with client() as http:
        problem(await http.get("/nothing"), 404, "NotFound")
        problem(await http.get("/optimize"), 405, "MethodNotAllowed")


async def test_the_documentation_is_complete() -> None:
    async with client() as http:
        document = (await http.get("/openapi.json")).json()
        page = await http.get("/docs")
    assert page.status_code == 200
    assert set(document["paths"]) == {
        "/addonplacementscores",
        "/constraints",
        "/fleet",
        "/fleet/events",
        "/optimize",
        "/placements/status",
        "/metrics",
        "/plan",
        "/placementoptimizations",
        "/placementoptimizations/{namespace}/{optimization}",
        "/placementoptimizations/{namespace}/{optimization}/plan",
        "/placementoptimizations/{namespace}/{optimization}/approve",
        "/plans",
        "/plans/{digest}",
        "/reset",
        "/rollback",
        "/rollouts",
        "/rollouts/{namespace}/{optimization}",
        "/rollouts/{namespace}/{optimization}/events",
        "/rollouts/{namespace}/{optimization}/{command}",
        "/scorers/history",
        "/scores/history",
        "/healthz",
        "/readyz",
    }
    schemas, seen = document["components"]["schemas"], json.dumps(document)
    assert "HTTPValidationError" not in schemas
    references = {part.split('"')[0] for part in seen.split("#/components/schemas/")[1:]}
    assert references <= set(schemas)
    optimize = document["paths"]["/optimize"]["post"]
    codes = {"200", "400", "401", "403", "404", "408", "409", "413", "421", "422", "429", "503"}
    assert set(optimize["responses"]) == codes
    examples = optimize["requestBody"]["content"]["application/json"]["examples"]
    assert set(examples) == {"performance", "power", "mig"}


async def test_the_shown_example_is_the_shipped_one() -> None:
    shipped = resources.files("dsf.sim") / "scenario" / "params.json"
    assert OPTIMIZE_EXAMPLES["performance"]["value"] == json.loads(shipped.read_text())


async def test_it_is_served_on_a_real_socket_until_cancelled() -> None:
    hub = EmbeddedHub(now=lambda: NOW)
    with listen("127.0.0.1", 0) as listener:
        app = create_app(Optimizer(hub, now=lambda: NOW), read_only=False)
        running = asyncio.create_task(serve(app, listener))
        async with httpx.AsyncClient(base_url=url(listener), trust_env=False, timeout=60) as http:
            problem(await http.post("/optimize", json=body()), 422, "UnknownName")
            chunks = (VALID[start : start + 50] for start in range(0, len(VALID), 50))

            async def slowly() -> AsyncIterator[bytes]:
                for chunk in chunks:
                    yield chunk

            response = await http.post("/optimize", content=slowly(), headers=JSON)
            problem(response, 422, "UnknownName")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize(
    ("filters", "named", "instead"),
    [
        ("namespace=nowhere", "nowhere", "worker01"),
        ("name=beauty", "beauty", "power"),
        ("namespace=worker01&name=beauty", "beauty", "performance"),
    ],
)
async def test_a_filter_that_names_nothing_is_told_what_exists(
    filters: str, named: str, instead: str
) -> None:
    async with client() as http:
        answer = await http.get(f"/addonplacementscores?{filters}")
    (wrong,) = problem(answer, 422, "UnknownName")["errors"]
    assert named in wrong["message"]
    assert instead in wrong["available"]


async def test_the_documentation_needs_no_other_server() -> None:
    async with client() as http:
        page = (await http.get("/docs")).text
        scripts = re.findall(r'(?:src|href)="([^"]+)"', page)
        answers = [(await http.get(script)).status_code for script in scripts]
    assert scripts
    assert answers == [200] * len(scripts)
    assert "http" not in "".join(scripts)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", 403),
        ("https://localhost.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://localhost:8338", 200),
        ("http://127.0.0.1", 200),
    ],
)
async def test_a_web_page_of_another_origin_is_refused(origin: str, status: int) -> None:
    async with client() as http:
        answer = await http.get("/healthz", headers={"Origin": origin})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:8338", 421),
        ("", 400),
        ("[:::::]", 400),
        ("[::1]evil", 400),
        ("localhost:80@evil.com", 400),
        ("localhost:8338", 200),
        ("127.0.0.1", 200),
        ("[::1]:8338", 200),
        ("Optimizer", 200),
    ],
)
async def test_only_our_own_names_are_answered(host: str, status: int) -> None:
    async with client() as http:
        answer = await http.get("/healthz", headers={"Host": host})
    assert answer.status_code == status


@pytest.mark.parametrize("allowed", ["Hub.Example", "hub.example:8338"])
async def test_an_allowed_host_is_meant_whatever_its_case_and_port(allowed: str) -> None:
    app = create_app(
        Optimizer(EmbeddedHub(), now=lambda: NOW), allowed_hosts=[allowed], read_only=False
    )
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1") as http:
        answer = await http.get("/healthz", headers={"Host": "hub.example:8338"})
    assert answer.status_code == 200
