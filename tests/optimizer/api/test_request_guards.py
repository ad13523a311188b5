"""What an operation does not declare is refused by name, before anything is read or written."""

import json
from typing import Any

import pytest

from dsf.kube import kinds
from tests.optimizer.api.test_app import JSON, client, problem
from tests.optimizer.api.test_documented_answers import DOCUMENT, OPERATIONS, filled
from tests.optimizer.build import body
from tests.optimizer.hubs import hub_of, names

GIVEN = {"namespace": "default", "score": "power", "cluster": "worker01"}
DEFAULT = b'{"namespace": "default"}'


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


def queried(method: str, path: str) -> list[str]:
    """The query parameters that an operation declares."""
    parameters = operation(method, path).get("parameters", ())
    return [item["name"] for item in parameters if item["in"] == "query"]


async def refused(method: str, url: str, content: bytes = b"") -> list[tuple[str, str]]:
    """The fields that a 422 names, and what it says of each."""
    async with client() as http:
        response = await http.request(method, url, content=content, headers=JSON)
    found = problem(response, 422, "InvalidField")
    assert all(item["field"] in found["detail"] for item in found["errors"])
    return [(item["field"], item["message"]) for item in found["errors"]]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_each_operation_refuses_a_query_parameter_that_it_does_not_declare(
    method: str, path: str
) -> None:
    given = "&".join(f"{name}={GIVEN[name]}" for name in queried(method, path) if name in GIVEN)
    content = DEFAULT if "requestBody" in operation(method, path) else b""
    errors = await refused(method, f"{filled(path)}?{given}&nope=1&nope=2", content)
    assert errors == [("nope", "unknown field")]


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        pytest.param(*item.values, name, id=f"{item.id} {name}")
        for item in OPERATIONS
        for name in queried(*map(str, item.values))
    ],
)
async def test_each_query_parameter_is_given_once(method: str, path: str, name: str) -> None:
    value = GIVEN.get(name, "true")
    errors = await refused(method, f"{filled(path)}?{name}={value}&{name}={value}", DEFAULT)
    assert (name, "is given more than once") in errors


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_each_operation_refuses_a_body_that_it_does_not_declare_or_can_t_tell_apart(
    method: str, path: str
) -> None:
    taken = "requestBody" in operation(method, path)
    content = b'{"namespace": "other", "namespace": "default"}' if taken else b'{"dryRun": true}'
    said = 'not valid JSON: "namespace" is named twice in one object'
    errors = await refused(method, filled(path), content)
    assert errors == [("body", said if taken else "this operation takes no body")]


@pytest.mark.parametrize(
    ("url", "content"),
    [
        ("/reset?dry_run=true&optimization=nope", '{"namespace": "default"}'),
        ("/reset", '{"namespace": "default", "stopWorkloads": false, "stopWorkloads": true}'),
        ("/optimize?dry_run=true&dry_run=false", json.dumps(body("power"))),
        ("/optimize", json.dumps(body("power"))[:-1] + ', "dryRun": true, "dryRun": false}'),
        ("/optimize", json.dumps(body("power")).replace('"name"', '"name": "x", "name"', 1)),
    ],
)
async def test_what_is_said_twice_or_nowhere_declared_writes_nothing(
    url: str, content: str
) -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        before = await hub.list(kinds.PLACEMENT)
        problem(await http.post(url, content=content, headers=JSON), 422, "InvalidField")
    assert await hub.list(kinds.PLACEMENT) == before
    assert await names(hub, kinds.PLACEMENT) != []


async def test_an_empty_body_and_other_objects_with_the_same_name_are_fine() -> None:
    async with client() as http:
        assert (await http.post("/optimize", json=body())).status_code == 200
        assert (await http.get("/rollouts?namespace=default")).status_code == 200
        assert (await http.request("get", "/healthz", json={})).text == "ok"
