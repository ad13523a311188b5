"""Which callers the REST API accepts, over real sockets."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from dsf.kube import kinds
from dsf.kube.access_reviews import ResourceAttributes, right
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, Unreachable
from dsf.kube.port import Kube
from optimizer.api.app import create_app
from optimizer.api.serving import listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth, ProtectedResource
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.authorized import Authorized
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.read_only import ReadOnly
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.kube_wrappers.wrapper import Call
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of, names
from tests.optimizer.operations.access.callers import WRITER, reads, table, writes

HANGS_SECONDS = 60


@asynccontextmanager
async def door(kube: Kube) -> AsyncIterator[httpx.AsyncClient]:
    access = Access(DelegatedAuth(kube))
    app = create_app(Optimizer(kube, now=lambda: NOW), access=access, read_only=False)
    with listen("127.0.0.1", 0) as listener:
        running = asyncio.create_task(serve(app, listener))
        async with httpx.AsyncClient(
            base_url=url(listener), trust_env=False, timeout=HANGS_SECONDS
        ) as http:
            yield http
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def hub() -> EmbeddedHub:
    hub = await hub_of(access=table())
    await hub.create(kinds.NAMESPACE, {"metadata": {"name": "other"}})
    return hub


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("user", "dry_run", "namespace", "status"),
    [
        ("stranger", True, "default", 403),
        ("stranger", True, "other", 403),
        ("stranger", False, "default", 403),
        ("stranger", False, "other", 403),
        ("reader", True, "default", 200),
        ("reader", True, "other", 422),
        ("reader", False, "default", 403),
        ("reader", False, "other", 403),
        ("writer", True, "default", 200),
        ("writer", True, "other", 422),
        ("writer", False, "default", 200),
        ("writer", False, "other", 403),
    ],
)
async def test_users_plan_and_apply_where_they_have_rights(
    user: str, dry_run: bool, namespace: str, status: int
) -> None:
    """A status of 422 passed the checks: the namespace has no such workloads."""
    fleet = await hub()
    async with door(fleet) as http:
        answer = await http.post(
            "/optimize",
            json={**body(), "namespace": namespace, "dryRun": dry_run},
            headers=bearer(f"token-of-{user}"),
        )
    assert answer.status_code == status
    written = 4 if (status, dry_run) == (200, False) else 0
    assert len(await names(fleet, kinds.PLACEMENT)) == written
    if status == 403:
        said = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert said["reason"] == "Forbidden"
        lacking = "list addonplacementscores" if user == "stranger" else "create placements"
        assert user in said["detail"]
        assert lacking in said["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer forged")],
        [("Authorization", "Bearer token-of-yesterday")],
        [("Authorization", "Bearer token-for-the-api-server")],
        [("Authorization", "Basic dG9rZW4tb2Ytd3JpdGVy")],
        [("Authorization", "Bearer token-of-writer, Bearer forged")],
        [("Authorization", "Bearer token-of-writer"), ("Authorization", "Bearer forged")],
    ],
)
@pytest.mark.parametrize("path", ["/optimize", "/reset", "/addonplacementscores", "/nothing"])
async def test_without_a_valid_token_nothing_is_said(
    headers: list[tuple[str, str]], path: str
) -> None:
    async with door(await hub()) as http:
        method = "GET" if path == "/addonplacementscores" else "POST"
        answer = await http.request(method, path, headers=headers, content=b"not even JSON")
    assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")
    assert answer.headers["content-type"] == "application/problem+json"
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="dynamic-scoring-optimizer"')
    assert ('error="invalid_token"' in challenge) is bool(headers)
    assert "writer" not in answer.text


async def test_headers_of_impersonation_make_nobody_somebody_else() -> None:
    """The API server honours them; this server asks only for the user of the token."""
    as_writer = {"Impersonate-User": WRITER.name, "Impersonate-Uid": WRITER.uid}
    async with door(await hub()) as http:
        headers = {**bearer("token-of-reader"), **as_writer}
        answer = await http.post("/reset", json={"namespace": "default"}, headers=headers)
        alone = await http.get("/addonplacementscores", headers=as_writer)
    assert (answer.status_code, "reader may not" in answer.json()["detail"]) == (403, True)
    assert alone.status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
async def test_health_and_documentation_are_open(path: str) -> None:
    async with door(await hub()) as http:
        assert (await http.get(path)).status_code == 200


async def test_the_scores_are_listed_for_those_who_may_list_them() -> None:
    async with door(await hub()) as http:
        statuses = [
            (await http.get("/addonplacementscores", headers=bearer(token))).status_code
            for token in ("token-of-stranger", "token-of-reader")
        ]
    assert statuses == [403, 200]


async def test_a_hub_that_can_not_be_asked_lets_nobody_in() -> None:
    def faults(call: Call) -> Fault | None:
        down = call.kind is kinds.TOKEN_REVIEW
        return Fault(Unreachable("POST tokenreviews: connection refused")) if down else None

    async with door(Faulty(await hub(), faults)) as http:
        answer = await http.get("/addonplacementscores", headers=bearer("token-of-reader"))
    assert (answer.status_code, answer.json()["reason"]) == (503, "HubUnreachable")
    assert "retry-after" in answer.headers


async def test_no_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with door(await hub()) as http:
        for token in ("token-of-writer", "token-of-reader", "token-of-yesterday"):
            await http.post("/reset", json={"namespace": "default"}, headers=bearer(token))
    said: list[Any] = [vars(record) for record in caplog.records]
    assert [record for record in said if record["name"] == "audit"]
    assert "token-of-" not in repr(
        [record for record in said if not record["name"].startswith(("httpx", "httpcore"))]
    )


async def test_the_document_names_the_scheme_and_the_refusals() -> None:
    async with door(await hub()) as http:
        document = (await http.get("/openapi.json")).json()
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    guarded = [("/optimize", "post"), ("/reset", "post"), ("/addonplacementscores", "get")]
    for path, method in guarded:
        assert {"401", "403"} <= set(document["paths"][path][method]["responses"])


@pytest.mark.parametrize(("path", "more"), [("/reset", {}), ("/optimize", body())])
async def test_a_namespace_that_does_not_exist_is_named(path: str, more: dict[str, Any]) -> None:
    fleet = await hub_of()
    app = create_app(Optimizer(fleet, now=lambda: NOW), read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.post(path, json={**more, "namespace": "nowhere"})
    said = answer.json()
    assert "nowhere" in said["detail"]
    if path == "/reset":
        assert (answer.status_code, said["reason"]) == (404, "UnknownNamespace")
        assert "Retry-After" not in answer.headers
    else:
        assert (answer.status_code, said["reason"]) == (422, "UnknownName")


OPTIMIZER = "system:serviceaccount:dynamic-scoring:optimizer"
OWN_RIGHTS = [
    *reads("default", "other"),
    *writes("default", "other"),
    *(right("list", kind) for kind in kinds.KINDS),
    *(right(verb, kinds.LEASE, "other") for verb in ("get", "create", "update", "patch")),
]
"""The optimizer may read everything, but its Lease it may only write in another namespace."""


@pytest.mark.parametrize(
    ("rights", "path", "missing"),
    [
        (OWN_RIGHTS, "/reset", "get leases.coordination.k8s.io in namespace default"),
        (OWN_RIGHTS, "/optimize", "get leases.coordination.k8s.io in namespace default"),
        ([], "/optimize", "list managedclusters.cluster.open-cluster-management.io in all"),
    ],
)
async def test_a_right_that_the_optimizer_itself_lacks_is_named(
    rights: list[ResourceAttributes], path: str, missing: str
) -> None:
    fleet = Authorized(await hub_of(), OPTIMIZER, AccessTable(rights={OPTIMIZER: rights}))
    app = create_app(Optimizer(fleet, now=lambda: NOW), read_only=False)
    transport = httpx.ASGITransport(app=app)
    asked = body() if path == "/optimize" else {"namespace": "default"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.post(path, json=asked)
    said = answer.json()
    assert (answer.status_code, said["reason"]) == (403, "OptimizerForbidden")
    assert missing in said["detail"]
    assert "Retry-After" not in answer.headers


NO_BINDINGS = [
    granted
    for granted in [
        *OWN_RIGHTS,
        *(
            right(verb, kind, "default")
            for verb in ("get", "create", "update", "patch", "delete")
            for kind in (kinds.LEASE, kinds.PLACEMENT_PLAN)
        ),
    ]
    if granted.resource != kinds.PLACEMENT_BINDING.plural or granted.verb == "list"
]
"""The optimizer may do everything in its namespace, except write PlacementBindings."""
BINDINGS_MISSING = "create placementbindings.policy.open-cluster-management.io in namespace default"


async def refused_write(own: Kube, access: Access | None = None) -> httpx.Response:
    """Return the answer to a plan whose PlacementBindings the hub refuses."""
    app = create_app(Optimizer(own, now=lambda: NOW), access=access, read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.post("/optimize", json=body(), headers=bearer("token-of-writer"))


async def test_a_right_to_write_that_the_optimizer_itself_lacks_is_named() -> None:
    fleet = await hub_of()
    own = Authorized(fleet, OPTIMIZER, AccessTable(rights={OPTIMIZER: NO_BINDINGS}))
    answer = await refused_write(own)
    said = answer.json()
    assert (answer.status_code, said["reason"]) == (403, "OptimizerForbidden")
    assert said["detail"].count(BINDINGS_MISSING) == 1
    assert {error["field"].split("/")[0] for error in said["errors"]} == {
        "PlacementBinding default"
    }
    assert "Retry-After" not in answer.headers
    assert len(await names(fleet, kinds.PLACEMENT)) == 4


async def test_a_right_that_the_impersonated_caller_lacks_is_the_callers() -> None:
    fleet = await hub()
    without = AccessTable(rights={WRITER.name: NO_BINDINGS})
    access = Access(DelegatedAuth(fleet), lambda user: Authorized(fleet, user.name, without))
    answer = await refused_write(fleet, access)
    said = answer.json()
    assert (answer.status_code, said["reason"]) == (403, "Forbidden")
    assert f"the caller may not: {BINDINGS_MISSING};" in said["detail"]


async def test_a_write_that_admission_refuses_may_pass() -> None:
    """Admission refuses with 403, too, but no right would help."""

    def refuse(call: Call) -> Fault | None:
        refused = call.verb == "create" and call.kind is kinds.PLACEMENT_BINDING
        return Fault(Forbidden('admission webhook "w" denied the request')) if refused else None

    answer = await refused_write(Faulty(await hub_of(), refuse))
    assert (answer.status_code, answer.json()["reason"]) == (503, "HubRefused")


async def test_another_refusal_of_the_hub_may_pass() -> None:
    app = create_app(Optimizer(ReadOnly(await hub_of()), now=lambda: NOW), read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.post("/reset", json={"namespace": "default"})
    assert (answer.status_code, answer.json()["reason"]) == (503, "HubRefused")
    assert "Retry-After" in answer.headers


@pytest.mark.parametrize(
    ("headers", "outcome"), [({}, "no token"), (bearer("forged-secret"), "invalid token")]
)
async def test_a_failed_login_is_in_the_audit_log(
    headers: dict[str, str], outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with door(await hub()) as http:
        await http.post("/reset", json={"namespace": "default"}, headers=headers)
    [line] = [record for record in caplog.records if record.name == "audit"]
    fields = vars(line)
    assert (fields["user"], fields["address"]) == ("(not authenticated)", "127.0.0.1")
    assert fields["outcome"] == outcome
    assert "forged-secret" not in caplog.text


RESOURCE = ProtectedResource(("https://login.example",))


async def test_who_has_no_token_learns_where_tokens_are_made() -> None:
    kube = await hub()
    access = Access(DelegatedAuth(kube), resource=RESOURCE)
    app = create_app(Optimizer(kube, now=lambda: NOW), access=access, read_only=False)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8338") as http:
        refused = await http.post("/mcp")
        assert refused.status_code == 401
        challenge = refused.headers["www-authenticate"]
        where = "http://localhost:8338/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in challenge
        document = (await http.get(where)).json()
    assert document["resource"] == "http://localhost:8338/mcp"
    assert document["authorization_servers"] == ["https://login.example"]
    named = ProtectedResource(RESOURCE.issuers, "https://scores.example")
    assert named.metadata("http://inner", "/mcp")["resource"] == "https://scores.example/mcp"


async def test_without_an_issuer_there_is_no_metadata() -> None:
    async with door(await hub()) as http:
        answer = await http.get("/.well-known/oauth-protected-resource")
    assert answer.status_code == 401
    assert "resource_metadata" not in answer.headers["www-authenticate"]
