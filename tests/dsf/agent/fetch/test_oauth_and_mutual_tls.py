"""Scoring APIs and sources behind OAuth 2.0 client credentials, and behind mutual TLS."""

import asyncio
import json
import socket
import ssl
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trustme
from aiohttp import web

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import AgentSecrets
from dsf.agent.fetch.http_client import HttpClient, http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.fetch.sources import Sources
from dsf.api import names
from dsf.api.crd.scorer_source import OAuth2
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import SECRET
from dsf.outbound.destinations import Destinations
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE
from tests.dsf.agent.servers import Server, matrix, replying, scores, serving

CLIENT_SECRET = "canary s3cr%t:+/"
ISSUED = "issued-canary-{}"
AUTHORITY = trustme.CA()


async def keep(kube: EmbeddedHub, name: str, data: Mapping[str, bytes], **more: Any) -> None:
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": AGENT_NAMESPACE, **more}
    await kube.create(SECRET, {"metadata": metadata, "type": "Opaque", "data": encoded})


def secrets_of(kube: EmbeddedHub, client: HttpClient) -> AgentSecrets:
    return AgentSecrets(kube, AGENT_NAMESPACE, IssuedTokens(client))


async def called(api: ScoringApi, asked: ScorerSummary) -> int | Failure:
    """Call a scoring API; return its status, or why there is none."""
    answer = await api.call(asked, [], api.deadline(asked))
    return answer if isinstance(answer, Failure) else answer.status


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with http_client() as made:
        yield made


@pytest.fixture
async def api(managed: EmbeddedHub, client: HttpClient) -> ScoringApi:
    return ScoringApi("worker01", client, secrets_of(managed, client), CallLimits())


class TokenEndpoint:
    """Issues tokens that are numbered; `answer` replaces what it sends."""

    def __init__(self) -> None:
        self.issued = 0
        self.more: dict[str, Any] = {"token_type": "Bearer", "expires_in": 3600}
        self.answer: Callable[[], web.Response] | None = None

    async def __call__(self, _: web.Request) -> web.StreamResponse:
        self.issued += 1
        await asyncio.sleep(0.01)  # so that concurrent scorers meet
        if self.answer:
            return self.answer()
        return web.json_response({"access_token": ISSUED.format(self.issued), **self.more})


@pytest.fixture
async def issuer(managed: EmbeddedHub) -> AsyncIterator[tuple[TokenEndpoint, Server]]:
    client = {"client_id": b"dsf agent", "client_secret": CLIENT_SECRET.encode()}
    await keep(managed, "oauth-client", client)
    endpoint = TokenEndpoint()
    async with serving(endpoint) as server:
        yield endpoint, server


@pytest.fixture
async def scorer() -> AsyncIterator[Server]:
    async with serving(replying(scores())) as server:
        yield server


def oauth2(server: Server, **more: Any) -> OAuth2:
    named = {"tokenURL": f"{server.url}/token", "clientSecretRef": {"name": "oauth-client"}}
    return OAuth2.model_validate({**named, **more})


def asking(scorer: Server, issuer: Server, name: str = "sample-scorer", **more: Any) -> Any:
    url = f"{scorer.url}/scoring"
    return summary(name, scoring_endpoint=url, scoring_endpoint_oauth2=oauth2(issuer, **more))


def bearers(server: Server) -> list[str]:
    return [call.headers["Authorization"].removeprefix("Bearer ") for call in server.calls]


async def test_concurrent_scorers_share_one_token_until_it_is_about_to_expire(
    api: ScoringApi, scorer: Server, issuer: tuple[TokenEndpoint, Server]
) -> None:
    _, server = issuer
    more = {"scopes": ["score:read", "score:write"], "audience": "https://scorer"}
    asked = [asking(scorer, server, f"scorer{n}", **more) for n in range(5)]

    assert await asyncio.gather(*(called(api, one) for one in asked)) == [200] * 5
    assert await called(api, asked[0]) == 200
    assert bearers(scorer) == [ISSUED.format(1)] * 6
    (call,) = server.calls
    assert (call.method, call.path) == ("POST", "/token")
    assert call.parameters == {
        "grant_type": "client_credentials",
        "scope": "score:read score:write",
        "audience": "https://scorer",
    }
    basic = b64decode(call.headers["Authorization"].removeprefix("Basic ")).decode()
    assert basic == "dsf+agent:canary+s3cr%25t%3A%2B%2F"


@pytest.mark.parametrize(
    ("lifetime", "issued"),
    [(0, 2), (-5, 2), ("0", 2), ("3600", 1), (None, 1), ("soon", 1), ("Infinity", 1)],
)
async def test_a_token_is_kept_as_long_as_its_answer_says(
    api: ScoringApi,
    scorer: Server,
    issuer: tuple[TokenEndpoint, Server],
    lifetime: object,
    issued: int,
) -> None:
    endpoint, server = issuer
    endpoint.more["expires_in"] = lifetime
    assert [await called(api, asking(scorer, server)) for _ in range(2)] == [200, 200]
    assert endpoint.issued == issued


async def test_a_refused_token_is_issued_anew_once(
    api: ScoringApi, scorer: Server, issuer: tuple[TokenEndpoint, Server]
) -> None:
    endpoint, server = issuer
    asked = asking(scorer, server)
    assert await called(api, asked) == 200

    async def revoked(request: web.Request) -> web.StreamResponse:
        fresh = request.headers["Authorization"].endswith("-2")
        return await replying(scores(), 200 if fresh else 401)(request)

    scorer.answer = revoked
    assert await called(api, asked) == 200
    assert bearers(scorer) == [ISSUED.format(n) for n in (1, 1, 2)]

    scorer.answer = replying({}, 401)
    assert await called(api, asked) == 401
    assert endpoint.issued == 3
    assert len(scorer.calls) == 5, "one more try, not more"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (401, {"error": "invalid_client", "error_description": CLIENT_SECRET}),
            "(invalid_client)",
        ),
        ((400, {"error": CLIENT_SECRET}), "answered 400; check the client"),
        ((302, {"error": "invalid_scope"}), "answered 302"),
        ((200, {"access_token": "a b", "token_type": "Bearer"}), "without a usable access_token"),
        ((200, {"token_type": "Bearer"}), "without a usable access_token"),
        ((200, {"access_token": "x", "token_type": "mac"}), "not of type Bearer"),
        ((200, [CLIENT_SECRET]), "without a usable access_token"),
        ((200, {"access_token": "x" * (1 << 17)}), "is larger than"),
    ],
)
async def test_what_a_token_endpoint_can_answer_wrongly(
    api: ScoringApi,
    scorer: Server,
    issuer: tuple[TokenEndpoint, Server],
    answer: tuple[int, Any],
    said: str,
) -> None:
    endpoint, server = issuer
    endpoint.answer = lambda: web.Response(
        status=answer[0], body=json.dumps(answer[1]), headers={"Location": f"{server.url}/other"}
    )
    failure = await called(api, asking(scorer, server))
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.reason) == ("scoring", "TokenNotIssued")
    assert said in failure.message
    assert "canary" not in failure.message
    assert scorer.calls == []
    assert len(server.calls) == 1


async def test_the_token_endpoint_is_under_the_rules_of_destinations(
    managed: EmbeddedHub, scorer: Server, issuer: tuple[TokenEndpoint, Server]
) -> None:
    _, server = issuer
    asked = asking(scorer, server, tokenURL=server.url.replace("127.0.0.1", "localhost"))
    async with http_client(Destinations(denied_hosts=("localhost",))) as client:
        api = ScoringApi("worker01", client, secrets_of(managed, client), CallLimits())
        failure = await called(api, asked)
    assert isinstance(failure, Failure)
    assert failure.reason == "TokenNotIssued"
    assert "the administrator denies the host 'localhost'" in failure.message
    assert server.calls == scorer.calls == []


@pytest.mark.parametrize(
    ("data", "annotations", "reason"),
    [
        ({"client_id": b"a"}, {}, "SecretKeyNotFound"),
        ({"client_secret": b"a"}, {}, "SecretKeyNotFound"),
        ({"client_id": b"a\nb", "client_secret": b"c"}, {}, "InvalidClient"),
        ({"client_id": b"a", "client_secret": b""}, {}, "InvalidClient"),
        (
            {"client_id": b"a", "client_secret": b"b"},
            {names.ALLOWED_HOSTS_ANNOTATION: "localhost"},
            "HostNotAllowed",
        ),
    ],
)
async def test_an_unusable_client_is_sent_nowhere(
    api: ScoringApi,
    managed: EmbeddedHub,
    scorer: Server,
    issuer: tuple[TokenEndpoint, Server],
    data: dict[str, bytes],
    annotations: dict[str, str],
    reason: str,
) -> None:
    """The Secret has to allow the host of the token endpoint and that of the scoring API."""
    await keep(managed, "other", data, annotations=annotations)
    _, server = issuer
    url = server.url.replace("127.0.0.1", "localhost")
    asked = asking(scorer, server, tokenURL=url, clientSecretRef={"name": "other"})
    failure = await called(api, asked)
    assert isinstance(failure, Failure)
    assert failure.reason == reason
    assert server.calls == scorer.calls == []


async def test_a_prometheus_takes_a_token_that_was_issued(
    managed: EmbeddedHub, client: HttpClient, issuer: tuple[TokenEndpoint, Server]
) -> None:
    _, server = issuer
    sources = Sources(client, secrets_of(managed, client), CallLimits())

    async def after_first(request: web.Request) -> web.StreamResponse:
        fresh = request.headers["Authorization"].endswith("-2")
        return await replying(matrix() if fresh else {}, 200 if fresh else 401)(request)

    async with serving(after_first) as prometheus:
        asked = summary(source_endpoint=prometheus.url, source_endpoint_oauth2=oauth2(server))
        assert not isinstance(await sources.fetch(asked, 0), Failure)
    assert bearers(prometheus) == [ISSUED.format(n) for n in (1, 2)]


def demanding(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("localhost").configure_cert(context)
    AUTHORITY.configure_trust(context)
    context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, version
    return context


def alerting() -> str:
    """Return the URL of a server that sends a TLS alert to a client without a certificate."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening, listening.accept()[0] as connection, suppress(ssl.SSLError):
            demanding(ssl.TLSVersion.TLSv1_2).wrap_socket(connection, server_side=True)

    threading.Thread(target=serve, daemon=True).start()
    return f"https://localhost:{listening.getsockname()[1]}"


@asynccontextmanager
async def mutual(
    answer: Any = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> AsyncIterator[Server]:
    """Serve https, to clients with a certificate of the authority only."""
    context = demanding(version)

    async def named(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        return await replying(answer or scores(), headers={"X-Client": str(subject)})(request)

    async with serving(named, context) as server:
        yield server


def certificate(authority: trustme.CA = AUTHORITY) -> dict[str, bytes]:
    made = authority.issue_cert("dsf-agent", common_name="dsf-agent")
    chain = b"".join(pem.bytes() for pem in made.cert_chain_pems)
    return {"tls.crt": chain, "tls.key": made.private_key_pem.bytes()}


@pytest.fixture
async def trusting(managed: EmbeddedHub) -> EmbeddedHub:
    await keep(managed, "authority", {"ca.crt": AUTHORITY.cert_pem.bytes()})
    return managed


def presenting(server: Server, name: str = "agent-tls", **more: Any) -> Any:
    return summary(
        scoring_endpoint=f"{server.url}/scoring",
        scoring_endpoint_ca_name="authority",
        scoring_endpoint_ca_key="ca.crt",
        scoring_endpoint_certificate_name=name,
        **more,
    )


async def test_a_client_certificate_is_presented_and_a_rotated_one_at_the_next_call(
    trusting: EmbeddedHub, api: ScoringApi
) -> None:
    await keep(trusting, "agent-tls", certificate(trustme.CA()))
    async with mutual() as server:
        refused = await called(api, presenting(server))
        assert isinstance(refused, Failure)
        await trusting.delete(SECRET, "agent-tls", AGENT_NAMESPACE)
        await keep(trusting, "agent-tls", certificate())
        assert await called(api, presenting(server)) == 200
        assert await api.probe(presenting(server)) is None, "TLS asks before the path is known"
        assert await called(api, presenting(server, "")) != 200


async def test_a_prometheus_may_want_a_certificate_too(
    trusting: EmbeddedHub, client: HttpClient
) -> None:
    await keep(trusting, "agent-tls", certificate())
    sources = Sources(client, secrets_of(trusting, client), CallLimits())
    async with mutual(matrix()) as server:
        asked = summary(
            source_endpoint=server.url,
            source_endpoint_ca_name="authority",
            source_endpoint_ca_key="ca.crt",
            source_endpoint_certificate_name="agent-tls",
        )
        assert not isinstance(await sources.fetch(asked, 0), Failure)


OWN, OTHER = certificate(), certificate()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("agent-tls", {"tls.crt": OWN["tls.crt"]}, "SecretKeyNotFound"),
        ("agent-tls", {**OWN, "tls.key": b"no key"}, "InvalidCertificate"),
        ("agent-tls", {**OWN, "tls.key": OTHER["tls.key"]}, "InvalidCertificate"),
        (names.HUB_KUBECONFIG_SECRET, OWN, "SecretRefused"),
        ("no-such-secret", None, "SecretNotFound"),
    ],
)
async def test_a_certificate_that_cannot_be_used_says_why(
    trusting: EmbeddedHub, api: ScoringApi, name: str, data: dict[str, bytes] | None, reason: str
) -> None:
    if data:
        await keep(trusting, name, data)
    async with mutual() as server:
        failure = await called(api, presenting(server, name))
        assert server.calls == []
    assert isinstance(failure, Failure)
    assert failure.reason == reason
    assert "PRIVATE KEY" not in failure.message


async def test_a_server_that_misses_a_certificate_is_named(
    trusting: EmbeddedHub, api: ScoringApi
) -> None:
    """A server that closes the connection at once may do so before its alert arrives."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        async with mutual(version=version) as server:
            closed = await called(api, presenting(server, ""))
        assert isinstance(closed, Failure)
        assert closed.reason == "Unreachable"
        assert closed.message.endswith("See auth.clientCertificateSecretRef")
    alerted = await called(api, presenting(Server(alerting(), replying({})), ""))
    assert isinstance(alerted, Failure)
    assert alerted.reason == "CertificateRefused"
    assert alerted.message.endswith("See auth.clientCertificateSecretRef")
