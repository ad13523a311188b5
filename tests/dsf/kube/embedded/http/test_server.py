"""The embedded hub over HTTP: what kubectl and other clients see besides the port."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.request_info import read_protobuf
from dsf.kube.embedded.http.server import create_app, serving
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, NAMESPACE
from dsf.kube.port import Object
from tests.dsf.kube.contract.objects import config_map, scorer

MAPS = "/api/v1/namespaces/n/configmaps"
SCORERS = "/apis/dynamic-scoring.open-cluster-management.io/v1alpha1/namespaces/n/dynamicscorers"
PAUSE_SECONDS = 7
"""A person who reads a plan; longer than the 5 s after which uvicorn closes by default."""

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


@asynccontextmanager
async def client_of(hub: EmbeddedHub) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(hub))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
async def hub() -> EmbeddedHub:
    """A hub with a namespace and one object."""
    found = EmbeddedHub()
    await found.create(NAMESPACE, {"metadata": {"name": "n"}})
    await found.create(CONFIG_MAP, config_map("n"))
    return found


@pytest.fixture
async def client(hub: EmbeddedHub) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(hub) as found:
        yield found


def assert_status(response: httpx.Response, code: int, reason: str, text: str = "") -> None:
    body = response.json()
    assert response.status_code == code
    assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
    assert (body["code"], body["reason"]) == (code, reason)
    assert text in body["message"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_it_says_that_it_is_well(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).text == "ok"


async def test_discovery_leads_to_every_kind(client: httpx.AsyncClient) -> None:
    assert (await client.get("/version")).json()["major"] == "1"
    assert (await client.get("/api")).json()["versions"] == ["v1"]
    groups = (await client.get("/apis")).json()["groups"]
    found: set[str] = set()
    for group_version in [
        "api/v1",
        *(f"apis/{v['groupVersion']}" for g in groups for v in g["versions"]),
    ]:
        listed = (await client.get(f"/{group_version}")).json()
        assert listed["kind"] == "APIResourceList"
        found |= {f"{group_version}/{resource['name']}" for resource in listed["resources"]}
    assert "api/v1/configmaps" in found
    assert "apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores/status" in found
    assert not any(name.endswith("clusterclaims/status") for name in found)


async def test_the_stable_version_of_a_group_is_preferred(client: httpx.AsyncClient) -> None:
    group = (await client.get("/apis/cluster.open-cluster-management.io")).json()
    versions = [version["version"] for version in group["versions"]]
    assert versions[0] == group["preferredVersion"]["version"] == "v1"
    assert versions[-1] == "v1alpha1"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/apis/nobody.example.com",
        "/apis/nobody.example.com/v1/things",
        "/api/v2/configmaps",
        "/api/v1/things",
        f"{MAPS}/settings/status",
        f"{MAPS}/settings/scale",
        f"{MAPS}/a/b/c/d",
        "/api/v1/namespaces/n/nodes",
        "/api/v1/configmaps/settings",
        "/openapi/v3/apis/nobody",
        "/openapi/v2",
    ],
)
async def test_what_is_not_served_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    assert_status(await client.get(path), 404, "NotFound", "could not find the requested resource")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{MAPS}/settings"),
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("DELETE", MAPS),
        ("DELETE", f"{SCORERS}/x/status"),
    ],
)
async def test_other_methods_are_not_allowed(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    assert_status(await client.request(method, path), 405, "MethodNotAllowed")


async def test_the_path_gives_the_namespace(client: httpx.AsyncClient) -> None:
    obj = config_map("n", "other")
    del obj["metadata"]["namespace"]
    assert (await client.post(MAPS, json=obj)).json()["metadata"]["namespace"] == "n"
    refused = await client.post(MAPS, json=config_map("default", "another"))
    assert_status(refused, 400, "BadRequest", "does not match the namespace sent on the request")


async def test_a_table_has_the_columns_of_the_definition(
    client: httpx.AsyncClient, hub: EmbeddedHub
) -> None:
    await hub.create(DYNAMIC_SCORER, scorer("n"))
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Synced",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"healthStatus": "Active", "conditions": [condition]}}
    await hub.patch(DYNAMIC_SCORER, "latency", status, "n", subresource="status")
    table = (await client.get(SCORERS, headers=TABLE)).json()
    names = [column["name"] for column in table["columnDefinitions"]]
    (row,) = table["rows"]
    cells = dict(zip(names, row["cells"], strict=True))
    assert table["kind"] == "Table"
    assert cells["Name"] == "latency"
    assert cells["Health"] == "Active"
    assert cells["Ready"] == "True"
    assert cells["Config URL"] == "http://scorer.example/config"
    assert cells["Score"] is None
    assert cells["Age"].endswith("s")
    assert row["object"]["kind"] == "PartialObjectMetadata"


async def test_a_delete_that_waits_returns_the_object(
    client: httpx.AsyncClient, hub: EmbeddedHub
) -> None:
    await hub.create(CONFIG_MAP, config_map("n", "kept", finalizers=["example.com/keep"]))
    answer = (await client.delete(f"{MAPS}/kept")).json()
    assert answer["kind"] == "ConfigMap"
    assert answer["metadata"]["deletionTimestamp"]


async def test_a_dry_run_answers_as_if_and_writes_nothing(
    client: httpx.AsyncClient, hub: EmbeddedHub
) -> None:
    before = await hub.list(CONFIG_MAP)
    dry = {"dryRun": "All"}
    created = await client.post(MAPS, json=config_map("n", "other"), params=dry)
    assert created.status_code == 201
    assert created.json()["metadata"]["uid"]
    merge = {"Content-Type": "application/merge-patch+json"}
    patched = await client.patch(
        f"{MAPS}/settings", content='{"data": {"a": "b"}}', headers=merge, params=dry
    )
    assert patched.json()["data"] == {"a": "b", "colour": "blue"}
    assert (await client.delete(f"{MAPS}/settings", params=dry)).status_code == 200
    refused = await client.post(MAPS, json=config_map("n"), params=dry)
    assert_status(refused, 409, "AlreadyExists")
    assert await hub.list(CONFIG_MAP) == before


async def test_strict_validation_names_unknown_fields_and_what_exists(
    client: httpx.AsyncClient,
) -> None:
    obj = scorer("n", colour="red")
    obj["metadata"]["size"] = 1
    answer = await client.post(SCORERS, json=obj, params={"fieldValidation": "Strict"})
    message = 'strict decoding error: unknown field "metadata.size", unknown field "spec.colour"'
    assert_status(answer, 400, "BadRequest", message)
    assert "description, configURL, configSyncMode" in answer.json()["message"]


async def test_unknown_fields_are_warned_of(client: httpx.AsyncClient) -> None:
    answer = await client.post(SCORERS, json=scorer("n", colour="red"))
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
    ignored = await client.put(
        f"{SCORERS}/latency",
        json={**answer.json(), "colour": "red"},
        params={"fieldValidation": "Ignore"},
    )
    assert "Warning" not in ignored.headers


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("fieldValidation", "Loose"),
        ("dryRun", "Some"),
        ("limit", "-1"),
        ("limit", "many"),
        ("includeObject", "Everything"),
        ("labelSelector", "a b"),
        ("fieldSelector", "data.a=b"),
        ("continue", "nonsense"),
    ],
)
async def test_malformed_parameters_are_refused(
    client: httpx.AsyncClient, parameter: str, value: str
) -> None:
    on_write = parameter in {"fieldValidation", "dryRun"}
    answer = await client.request(
        "POST" if on_write else "GET",
        MAPS,
        params={parameter: value},
        headers=TABLE,
        json=config_map("n", "other") if on_write else None,
    )
    assert_status(answer, 400, "BadRequest")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b'{"metadata": {"name": NaN}}',
        b'{"metadata": 1}',
        b'{"metadata": {"name": "x"}, "data": []}',
        b'{"metadata": {"name": "x"}, "data": {"a": "1", "a": "2"}}',
        b"[" * 100_000,
        b'{"metadata": {"name": "x"}, "data": {"a": ' + b"9" * 5000 + b"}}",
    ],
)
async def test_bad_bodies_are_bad_requests(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post(MAPS, content=body, headers={"Content-Type": "application/json"})
    assert_status(answer, 400, "BadRequest")


async def test_a_body_has_a_limit(client: httpx.AsyncClient) -> None:
    obj = config_map("n", "large")
    obj["data"] = {"a": "x" * (3 * 1024 * 1024)}
    assert_status(await client.post(MAPS, json=obj), 413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_what_a_web_page_may_send_is_not_accepted(
    client: httpx.AsyncClient, media_type: str
) -> None:
    text = json.dumps(config_map("n", "other"))
    answer = await client.post(MAPS, content=text, headers={"Content-Type": media_type})
    assert_status(answer, 415, "UnsupportedMediaType", "application/json")


async def test_another_host_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get(MAPS, headers={"Host": "rebound.example:80"})
    assert_status(answer, 403, "Forbidden", "rebound.example")


@pytest.mark.parametrize("host", ["[::1]evil", "localhost:80@evil.example"])
async def test_a_malformed_host_is_refused(client: httpx.AsyncClient, host: str) -> None:
    answer = await client.get(MAPS, headers={"Host": host})
    assert_status(answer, 400, "BadRequest", "no host")


async def patched(client: httpx.AsyncClient, path: str, kind: str, patch: Any) -> httpx.Response:
    headers = {"Content-Type": f"application/{kind}"}
    return await client.patch(path, content=json.dumps(patch), headers=headers)


async def test_a_strategic_patch_merges_maps_of_built_in_kinds(
    client: httpx.AsyncClient, hub: EmbeddedHub
) -> None:
    await hub.create(DYNAMIC_SCORER, scorer("n"))
    patch = {"metadata": {"labels": {"a": "b"}}, "data": {"colour": None, "size": "3"}}
    answer = await patched(client, f"{MAPS}/settings", "strategic-merge-patch+json", patch)
    assert answer.json()["metadata"]["labels"] == {"a": "b"}
    assert answer.json()["data"] == {"size": "3"}
    refused = await patched(client, f"{SCORERS}/latency", "strategic-merge-patch+json", patch)
    assert_status(refused, 415, "UnsupportedMediaType", "application/merge-patch+json")


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"finalizers": ["example.com/a"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "example.com/a"}},
        {"data": {"$patch": "replace", "a": "b"}},
        [],
    ],
)
async def test_a_strategic_patch_of_a_list_is_refused_with_what_to_do(
    client: httpx.AsyncClient, patch: Any
) -> None:
    answer = await patched(client, f"{MAPS}/settings", "strategic-merge-patch+json", patch)
    assert_status(answer, 415, "UnsupportedMediaType", "use kubectl patch --type merge")


@pytest.mark.parametrize(
    "options", [{"propagationPolicy": "Foreground"}, {"orphanDependents": True}]
)
async def test_dependents_are_only_deleted_in_the_background(
    client: httpx.AsyncClient, options: Any
) -> None:
    answer = await client.request("DELETE", f"{MAPS}/settings", json=options)
    assert_status(answer, 400, "BadRequest", "use kubectl delete without --cascade")
    assert (await client.get(f"{MAPS}/settings")).status_code == 200


@pytest.mark.parametrize("encoding", ["yaml", "cbor"])
async def test_a_server_side_apply_is_refused_with_the_reason_and_what_to_do(
    client: httpx.AsyncClient, encoding: str
) -> None:
    answer = await patched(client, f"{MAPS}/settings", f"apply-patch+{encoding}", {})
    assert_status(answer, 415, "UnsupportedMediaType", "use kubectl apply without --server-side")
    assert "does not record which client owns a field" in answer.json()["message"]


@pytest.mark.parametrize("patch", [[], 1, "x", None])
async def test_a_patch_must_leave_an_object(client: httpx.AsyncClient, patch: Any) -> None:
    answer = await patched(client, f"{MAPS}/settings", "merge-patch+json", patch)
    assert_status(answer, 400, "BadRequest")


def protobuf(kind: str, message: bytes, api_version: str = "v1") -> bytes:
    """An object in the envelope that kubectl sends; all lengths are below 128."""
    type_ = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\x00" + _field(1, type_) + _field(2, message)


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}
REVIEWS: list[tuple[str, str, bytes, Object]] = [
    (
        "authorization",
        "SelfSubjectAccessReview",
        _field(2, _field(1, _field(1, b"n") + _field(2, b"get") + _field(5, b"nodes"))),
        {"spec": {"resourceAttributes": {"namespace": "n", "verb": "get", "resource": "nodes"}}},
    ),
    (
        "authorization",
        "SelfSubjectAccessReview",
        _field(2, _field(2, _field(1, b"/healthz") + _field(2, b"get"))),
        {"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}},
    ),
    (
        "authorization",
        "SelfSubjectRulesReview",
        _field(2, _field(1, b"n")),
        {"spec": {"namespace": "n"}},
    ),
    ("authentication", "SelfSubjectReview", b"", {}),
]


@pytest.mark.parametrize(("group", "kind", "message", "read"), REVIEWS)
async def test_protobuf_of_kubectl_auth_is_read(
    client: httpx.AsyncClient, group: str, kind: str, message: bytes, read: Object
) -> None:
    api_version = f"{group}.k8s.io/v1"
    body = protobuf(kind, _field(1, b"") + message, api_version)
    path = f"/apis/{api_version}/{kind.lower()}s"
    answer = await client.post(path, content=body, headers=PROTOBUF)
    assert answer.status_code == 201
    assert {"kind": kind, **read}.items() <= answer.json().items()
    assert answer.json()["status"]


async def test_protobuf_of_kubectl_create_is_read(client: httpx.AsyncClient) -> None:
    labels = _field(11, _field(1, b"a") + _field(2, b"b"))
    metadata = _field(1, _field(1, b"other") + _field(3, b"n") + labels)
    message = metadata + _field(2, _field(1, b"colour") + _field(2, b"red"))
    answer = await client.post(MAPS, content=protobuf("ConfigMap", message), headers=PROTOBUF)
    assert answer.status_code == 201
    assert answer.json()["data"] == {"colour": "red"}
    assert answer.json()["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    "body",
    [b"", b"k8s", b"k8s\x00\xff", b"k8s\x00\x0a\x7f", b"k8s\x00\x08\x01", protobuf("Pod", b"")],
)
async def test_other_protobuf_is_a_bad_request(client: httpx.AsyncClient, body: bytes) -> None:
    assert_status(await client.post(MAPS, content=body, headers=PROTOBUF), 400, "BadRequest")


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda body: protobuf("Secret", body)))
def test_no_protobuf_is_anything_but_an_object_or_malformed(body: bytes) -> None:
    try:
        assert read_protobuf(body)["kind"] == "Secret"
    except ValueError:
        return


async def watched(url: str, count: int, **parameters: str) -> list[Object]:
    """Return the first events of a watch over a real connection."""
    events: list[Object] = []
    parameters = {"watch": "true", "timeoutSeconds": "30", **parameters}
    async with (
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("GET", url + MAPS, params=parameters) as response,
    ):
        assert response.status_code == 200
        async for line in response.aiter_lines():
            events.append(json.loads(line))
            if len(events) == count:
                break
    return events


async def test_bookmarks_are_sent_to_whom_asks(hub: EmbeddedHub) -> None:
    version = (await hub.list(CONFIG_MAP)).resource_version
    query = {"resourceVersion": version, "timeoutSeconds": "1"}
    async with serving(hub) as url:
        with_them, without = await asyncio.gather(
            watched(url, 1, allowWatchBookmarks="true", **query), watched(url, 1, **query)
        )
    assert [event["type"] for event in with_them] == ["BOOKMARK"]
    assert without == []


async def test_initial_events_end_with_a_marked_bookmark(hub: EmbeddedHub) -> None:
    async with serving(hub) as url:
        added, bookmark = await watched(
            url, 2, sendInitialEvents="true", resourceVersionMatch="NotOlderThan"
        )
    assert added["object"]["metadata"]["name"] == "settings"
    annotations = bookmark["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_from_a_forgotten_version_is_410() -> None:
    hub = EmbeddedHub(history=1)
    for name in ("a", "b", "c"):
        await hub.create(NAMESPACE, {"metadata": {"name": name}})
    async with client_of(hub) as client:
        query = {"watch": "1", "resourceVersion": "2"}
        assert_status(await client.get("/api/v1/namespaces", params=query), 410, "Expired")


async def test_ending_the_server_ends_its_watches(hub: EmbeddedHub) -> None:
    version = (await hub.list(CONFIG_MAP)).resource_version
    async with serving(hub) as url:
        seen = asyncio.ensure_future(watched(url, 9, resourceVersion=version))
        await hub.create(CONFIG_MAP, config_map("n", "other"))
        await asyncio.sleep(0.2)
    assert [event["type"] for event in await seen] == ["ADDED"]


async def test_a_used_port_is_an_os_error(hub: EmbeddedHub) -> None:
    async with serving(hub) as url:
        port = int(url.rsplit(":", 1)[1])
        with pytest.raises(OSError, match="in use"):
            async with serving(hub, port=port):
                pass


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
places = st.sampled_from(
    [
        "metadata",
        "metadata.name",
        "metadata.labels",
        "metadata.labels.a",
        "metadata.finalizers",
        "metadata.ownerReferences",
        "metadata.deletionTimestamp",
        "metadata.resourceVersion",
        "spec",
        "spec.source",
        "spec.source.params",
        "spec.source.params.query",
        "spec.configSyncMode",
        "status",
        "status.conditions",
        "apiVersion",
        "kind",
    ]
)


@given(place=places, value=json_values, method=st.sampled_from(["POST", "PUT", "PATCH"]))
def test_no_body_is_an_internal_error(place: str, value: Any, method: str) -> None:
    async def run() -> httpx.Response:
        hub = EmbeddedHub()
        await hub.create(NAMESPACE, {"metadata": {"name": "n"}})
        created = await hub.create(DYNAMIC_SCORER, scorer("n"))
        body: Any = created if method == "PUT" else scorer("n", "other")
        if method == "PATCH":
            body = {}
        *path, last = place.split(".")
        inner = body
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        async with client_of(hub) as client:
            return await client.request(
                method,
                SCORERS if method == "POST" else f"{SCORERS}/latency",
                content=json.dumps(body),
                headers={"Content-Type": media},
            )

    answer = asyncio.run(run())
    assert answer.status_code < 500, answer.text


@pytest.mark.exhaustive
async def test_a_connection_can_be_used_again_after_a_pause() -> None:
    async with serving(EmbeddedHub()) as url:
        reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
        for pause in (PAUSE_SECONDS, 0):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            await reader.readuntil(b"\r\n\r\nok")
            await asyncio.sleep(pause)
        writer.close()
