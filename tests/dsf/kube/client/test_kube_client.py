"""What the adapter sends and how it reads the answers, over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

import dsf
from dsf.kube.access_reviews import UserInfo, token_review
from dsf.kube.client.connect import connect
from dsf.kube.client.kube_client import Client
from dsf.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from dsf.kube.kinds import CONFIG_MAP, MANAGED_CLUSTER, TOKEN_REVIEW
from tests.dsf.kube.client.api_server import Answer, ApiServer, send, serving, status, stream
from tests.dsf.kube.client.kubeconfigs import kubeconfig, written
from tests.spellings import SPELLINGS, spelled_pieces

POOL = 100
"""Connections of one pool; the default of the Kubernetes client."""
OBJECT = {"metadata": {"name": "a", "namespace": "ns"}, "data": {}}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serving() as server:
        yield server


@pytest.fixture
async def client(server: ApiServer, tmp_path: Path) -> AsyncIterator[Client]:
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "t"}))
    async with connect(config) as client:
        yield client


async def answer_object(_: ApiServer, __: web.Request) -> web.StreamResponse:
    return web.json_response(OBJECT)


async def test_a_call_is_made_with_the_rights_of_an_impersonated_user(
    client: Client, server: ApiServer
) -> None:
    groups = ("team a", "system:authenticated", "system:masters")
    alice = UserInfo("alice", uid="u-1", groups=groups)
    for caller in (client.impersonating(alice), client):
        server.others.append(answer_object)
        await caller.get(CONFIG_MAP, "a", "other")
    impersonated, own = (request.headers for request in server.requests)
    assert own["User-Agent"] == f"dynamic-scoring-framework/{dsf.__version__}"
    assert impersonated["Authorization"] == own["Authorization"] == "Bearer t"
    assert impersonated["Impersonate-User"] == "alice"
    assert impersonated.getall("Impersonate-Group") == ["team a"]
    assert not [name for name in own if name.startswith("Impersonate")]


async def test_a_page_is_read_with_the_types_that_built_in_lists_leave_out(
    client: Client, server: ApiServer
) -> None:
    for name in "abc":
        server.put(name)
    page = await client.list(CONFIG_MAP, "ns", limit=2)
    assert [(obj["kind"], obj["apiVersion"]) for obj in page.items] == [("ConfigMap", "v1")] * 2
    assert (page.resource_version, page.continue_token, page.remaining) == ("4", "2", 1)


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
    ],
)
async def test_a_status_becomes_its_error(
    client: Client, server: ApiServer, code: int, reason: str, error: type[KubeError]
) -> None:
    server.lists.extend([status(code, reason)] * 2)
    with pytest.raises(error, match=f"scripted {code}") as raised:
        await client.list(CONFIG_MAP, "ns")
    assert type(raised.value) is error


async def test_what_a_busy_server_says_is_kept(client: Client, server: ApiServer) -> None:
    fairness = {
        "X-Kubernetes-PF-FlowSchema-UID": "schema",
        "X-Kubernetes-PF-PriorityLevel-UID": "level",
    }
    server.lists.append(status(429, "TooManyRequests", **{"Retry-After": "7"}, **fairness))
    with pytest.raises(TooManyRequests) as raised:
        await client.list(CONFIG_MAP, "ns")
    assert raised.value.details == {
        "retryAfterSeconds": 7,
        "flowSchemaUID": "schema",
        "priorityLevelUID": "level",
    }


async def test_a_kind_that_is_not_served_is_named(client: Client) -> None:
    with pytest.raises(NotFound, match=r"does not serve managedclusters\.cluster.* installed\?"):
        await client.list(MANAGED_CLUSTER)


async def answer_html(_: ApiServer, __: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>\n log in\n</html>", content_type="text/html")


TOKEN = "canary+0af3/Zz91~b7c5d2e8f6"


async def repeated_in_html(text: str) -> web.StreamResponse:
    return web.Response(status=502, text=f"<html>cannot relay {text}")


async def repeated_in_a_status(text: str) -> web.StreamResponse:
    causes = [{"message": f"you sent {text}"}]
    return web.json_response(
        {"kind": "Status", "message": f"no: {text}", "reason": text, "details": {"causes": causes}},
        status=403,
    )


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("answer", [repeated_in_html, repeated_in_a_status])
async def test_a_server_that_spells_the_token_is_not_quoted(
    server: ApiServer, tmp_path: Path, answer: Callable[[str], Any], spelling: str
) -> None:
    async def spell(_: ApiServer, request: web.Request) -> web.StreamResponse:
        sent = request.headers["Authorization"].removeprefix("Bearer ")
        assert sent == TOKEN
        return cast("web.StreamResponse", await answer(SPELLINGS[spelling](sent)))

    async def rejected(_: ApiServer, request: web.Request) -> web.StreamResponse:
        sent = (await request.json())["spec"]["token"]
        return cast("web.StreamResponse", await answer(SPELLINGS[spelling](sent)))

    other = "callers-own-0123456789abcdef"
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": TOKEN}))
    server.lists.append(spell)
    server.others.append(rejected)
    async with connect(config) as kube:
        with pytest.raises(ApiError, match=r"answered (502|403); its words") as listed:
            await kube.list(CONFIG_MAP, "ns")
        with pytest.raises(ApiError, match=r"answered (502|403); its words") as reviewed:
            await kube.create(TOKEN_REVIEW, token_review(other, ()))
    assert spelled_pieces(TOKEN, repr(listed.value.status())) == []
    assert spelled_pieces(other, repr(reviewed.value.status())) == []


async def answer_deep(_: ApiServer, __: web.Request) -> web.StreamResponse:
    return web.Response(text='{"items":' + "[" * 100_000 + "]" * 100_000 + "}")


async def answer_deep_error(_: ApiServer, __: web.Request) -> web.StreamResponse:
    return web.Response(status=502, text="[" * 100_000)


async def answer_bad_gateway(_: ApiServer, __: web.Request) -> web.StreamResponse:
    return web.Response(status=502, text="bad\ngateway")


async def answer_redirect(server: ApiServer, _: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": f"{server.url}/api/v1/elsewhere"})


async def answer_cut(_: ApiServer, request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"items":')
    assert request.transport
    request.transport.abort()
    return response


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (answer_html, Unreachable, "is not a JSON object"),
        (answer_deep, Unreachable, "is not a JSON object"),
        (answer_deep_error, ServerError, "answered 502"),
        (answer_bad_gateway, ServerError, "answered 502; its words are not repeated"),
        (answer_redirect, Unreachable, r"is a redirect \(307\)"),
        (answer_cut, Unreachable, "GET http://127.0.0.1:"),
    ],
)
async def test_an_answer_that_no_api_server_gives_is_an_error_of_one_line(
    client: Client, server: ApiServer, answer: Answer, error: type[KubeError], message: str
) -> None:
    server.lists.append(answer)
    with pytest.raises(error, match=message) as raised:
        await client.list(CONFIG_MAP, "ns")
    assert "\n" not in str(raised.value)
    assert [request.path for request in server.requests if "elsewhere" in request.path] == []


async def test_a_server_that_is_away_is_unreachable(client: Client, server: ApiServer) -> None:
    await server.stop()
    with pytest.raises(Unreachable, match=r"GET http://127\.0\.0\.1:"):
        await client.list(CONFIG_MAP, "ns")


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_closed_client_opens_no_connection(
    server: ApiServer, tmp_path: Path, asked_before: bool
) -> None:
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "t"}))
    async with connect(config) as client:
        if asked_before:
            await client.list(CONFIG_MAP, "ns")
    with pytest.raises(Unreachable, match=r"GET http://127\.0\.0\.1:.*: the client is closed"):
        await client.list(CONFIG_MAP, "ns")
    assert len(server.requests) == asked_before


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../secrets/s", "a%2Fb"])
async def test_a_name_never_leads_to_another_path(
    client: Client, server: ApiServer, name: str
) -> None:
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, name, "ns")
    with pytest.raises(NotFound):
        await client.delete(CONFIG_MAP, "a", name or "..")
    assert server.requests == []


async def test_an_odd_name_is_quoted(client: Client, server: ApiServer) -> None:
    server.others.append(answer_object)
    await client.get(CONFIG_MAP, "a?watch=true#x", "n s")
    (request,) = server.requests
    assert request.path_qs == "/api/v1/namespaces/n%20s/configmaps/a%3Fwatch=true%23x"


async def test_an_object_without_its_namespace_is_refused(
    client: Client, server: ApiServer
) -> None:
    with pytest.raises(BadRequest, match=r"metadata\.namespace is missing"):
        await client.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    assert server.requests == []


async def test_a_watch_asks_for_bookmarks_and_an_end(client: Client, server: ApiServer) -> None:
    async def closed(_: ApiServer, request: web.Request) -> web.StreamResponse:
        return await stream(request)

    server.watches.append(closed)
    watch = client.watch(CONFIG_MAP, "ns", resource_version="5", timeout_seconds=250)
    assert [event async for event in watch] == []
    [request] = server.requests
    assert dict(request.query) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "250",
    }


async def test_events_come_one_by_one_however_they_are_cut(
    client: Client, server: ApiServer
) -> None:
    async def dripping(_: ApiServer, request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        event = {"type": "ADDED", "object": {**OBJECT, "data": {"é": "x" * 50}}}
        text = json.dumps(event, ensure_ascii=False).encode()
        for part in (text[:70], text[70:] + b"\n\n" + text, b"\n" + text + b"\n"):
            await response.write(part)
        await send(response, "DELETED", OBJECT)
        return response

    server.watches.append(dripping)
    events = [event async for event in client.watch(CONFIG_MAP, "ns", resource_version="1")]
    assert [event.type for event in events] == ["ADDED"] * 3 + ["DELETED"]
    assert events[0].object["data"] == {"é": "x" * 50}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b'{"type": "ADDED", "object": {"metadata"', "ended within a line"),
        (b"<html>\n", "is not a JSON object"),
        (b'{"type": "ADDED"}\n', "without an object"),
    ],
)
async def test_an_event_that_cannot_be_read_ends_the_watch(
    client: Client, server: ApiServer, sent: bytes, message: str
) -> None:
    async def broken(_: ApiServer, request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await send(response, "ADDED", OBJECT)
        await response.write(sent)
        return response

    server.watches.append(broken)
    watch = client.watch(CONFIG_MAP, "ns", resource_version="1")
    assert (await anext(watch)).object["metadata"] == OBJECT["metadata"]
    with pytest.raises(Unreachable, match=message):
        await anext(watch)


@pytest.mark.parametrize(("code", "error"), [(410, Gone), (500, ServerError), (None, ServerError)])
async def test_an_error_event_is_raised(
    client: Client, server: ApiServer, code: int | None, error: type[KubeError]
) -> None:
    async def failing(_: ApiServer, request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await send(response, "ERROR", {"kind": "Status", "code": code, "message": "m"})
        return response

    server.watches.append(failing)
    with pytest.raises(error, match="m"):
        await anext(client.watch(CONFIG_MAP, "ns", resource_version="1"))


async def test_a_watch_that_nobody_reads_any_more_lets_the_connection_go(
    client: Client, server: ApiServer
) -> None:
    server.put("a")
    watch = client.watch(CONFIG_MAP, "ns", resource_version="1")
    await anext(watch)
    [request] = server.requests
    assert request.transport
    await watch.aclose()  # type: ignore[attr-defined]  # an async generator
    async with asyncio.timeout(60):
        while request.transport:  # noqa: ASYNC110 - its end has no event to wait on
            await asyncio.sleep(0.01)


async def test_own_connections_are_free_while_all_others_are_in_use(
    client: Client, server: ApiServer
) -> None:
    server.put("a")
    watches = [client.watch(CONFIG_MAP, "ns", resource_version="1") for _ in range(POOL)]
    await asyncio.gather(*(anext(watch) for watch in watches))
    waiting = asyncio.create_task(client.list(CONFIG_MAP, "ns"))
    own = client.on_own_connections("health")
    for _ in range(3):
        assert len((await own.list(CONFIG_MAP, "ns")).items) == 1
    assert not waiting.done()
    await watches[0].aclose()  # type: ignore[attr-defined]  # an async generator
    assert len((await waiting).items) == 1
    for watch in watches:
        await watch.aclose()  # type: ignore[attr-defined]  # an async generator
