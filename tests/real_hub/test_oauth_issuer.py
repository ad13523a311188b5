"""Tokens of an OAuth issuer, verified by a real API server (structured authentication)."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from joserfc import jwt
from joserfc.jwk import RSAKey

from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from mcp_server.app import create_service_app
from optimizer.api.serving import listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth, ProtectedResource
from optimizer.service.optimizer import Optimizer
from tests.eventually import until

from .harness.control_plane import NO_ISSUER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from .harness.hub import Hub

RBAC = "rbac.authorization.k8s.io"
USER = "issuer:ada"
CLUSTER = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
AUDIENCE = "dynamic-scoring-optimizer"
HOUR = 3600

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


class Issuer:
    """An OpenID provider on loopback: its documents, and tokens that it signs."""

    def __init__(self, address: str) -> None:
        self.url = address
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})

    def document(self, path: str) -> dict[str, Any] | None:
        """What it publishes at a path."""
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            },
            "/keys": {"keys": [self.key.as_dict(private=False)]},
        }.get(path)

    def token(self, *, key: RSAKey | None = None, **claims: Any) -> str:
        """A token of the user for this server; claims and key may be wrong ones."""
        now = int(time.time())
        usual = {"iss": self.url, "sub": "ada", "aud": AUDIENCE, "iat": now, "exp": now + HOUR}
        return jwt.encode({"alg": "RS256", "kid": "first"}, usual | claims, key or self.key)


@pytest.fixture
def issuer(hub: Hub) -> Iterator[Issuer]:
    with served_issuer(hub) as found:
        before = hub.authentication.read_text()
        hub.authentication.write_text(yaml.safe_dump(trusting(found, hub)))
        until("tokens of the issuer to be accepted", lambda: user_of(hub, found.token()) == USER)
        yield found
        hub.authentication.write_text(before)


@contextmanager
def served_issuer(hub: Hub) -> Iterator[Issuer]:
    pair = hub.authority.server("issuer")
    issuer: list[Issuer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = issuer[0].document(self.path)
            data = json.dumps(found).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    issuer.append(Issuer(f"https://127.0.0.1:{server.server_port}"))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def user_of(hub: Hub, token: str) -> str:
    """Whose token the API server says this is."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    path = hub.api.path("authentication.k8s.io/v1", "TokenReview")
    status = hub.api.request("POST", path, {**review, "spec": {"token": token}})["status"]
    return str(status.get("user", {}).get("username", ""))


def trusting(issuer: Issuer, hub: Hub) -> dict[str, Any]:
    """The API server's configuration: users of this issuer have a prefix."""
    trusted = {
        "url": issuer.url,
        "audiences": [AUDIENCE],
        "certificateAuthority": hub.authority.own.certificate.read_text(),
    }
    mapping = {"username": {"claim": "sub", "prefix": "issuer:"}}
    jwt_authenticator = {"issuer": trusted, "claimMappings": mapping}
    return {**NO_ISSUER, "jwt": [jwt_authenticator]}


@asynccontextmanager
async def protected(hub: Hub, issuer: Issuer) -> AsyncIterator[str]:
    """Serve the product to callers with tokens of the issuer; yield its URL."""
    async with connect(hub.admin_kubeconfig) as kube:
        # The hub gives each token that it accepts from an issuer its own audience.
        auth = DelegatedAuth(kube, [hub.server])
        access = Access(auth, resource=ProtectedResource((issuer.url,)))
        app = create_service_app(Optimizer(kube, now=utc_now), access=access)
        with listen("127.0.0.1", 0) as listener:
            task = asyncio.create_task(serve(app, listener))
            try:
                yield url(listener)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def token_by_metadata(http: httpx.AsyncClient, address: str, issuer: Issuer) -> str:
    """Find the issuer as a client does that has no token, and get one there."""
    refused = await http.post(f"{address}/mcp", json={})
    assert refused.status_code == httpx.codes.UNAUTHORIZED
    _, _, quoted = refused.headers["www-authenticate"].partition('resource_metadata="')
    metadata = (await http.get(quoted.partition('"')[0])).json()
    assert metadata["resource"] == f"{address}/mcp"
    assert metadata["authorization_servers"] == [issuer.url]
    return issuer.token()


def test_a_client_finds_the_issuer_and_its_signed_token_is_worth_its_users_rights(
    hub: Hub, issuer: Issuer
) -> None:
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-reader-of-issuer"}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    metadata = {"name": role["name"]}
    api = f"{RBAC}/v1"
    hub.apply({"apiVersion": api, "kind": role["kind"], "metadata": metadata, "rules": rules})
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": USER}]
    binding = {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": metadata}
    hub.apply({**binding, "roleRef": role, "subjects": subjects})
    wrong = {
        "of another key": issuer.token(key=RSAKey.generate_key(2048)),
        "for another audience": issuer.token(aud="something-else"),
        "expired": issuer.token(exp=int(time.time()) - HOUR),
        "of another issuer": issuer.token(iss="https://issuer.invalid"),
    }

    async def task() -> None:
        async with (
            protected(hub, issuer) as address,
            httpx.AsyncClient(trust_env=False, timeout=60) as http,
        ):
            token = await token_by_metadata(http, address, issuer)
            transport = StreamableHttpTransport(
                f"{address}/mcp", headers={"Authorization": f"Bearer {token}"}
            )
            async with Client(transport) as client:
                seen = (await client.call_tool("fleet_overview", {})).structured_content
                assert seen["total_clusters"] == len(hub.api.list(*CLUSTER))
            for what, forged in wrong.items():
                headers = {"Authorization": f"Bearer {forged}"}
                answer = await http.get(f"{address}/addonplacementscores", headers=headers)
                assert answer.status_code == httpx.codes.UNAUTHORIZED, what

    asyncio.run(task())
