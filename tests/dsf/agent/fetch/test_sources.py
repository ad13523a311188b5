import asyncio
import gzip
import json
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import AgentSecrets, ServiceAccount
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.sources import Sources
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists
from dsf.kube.kinds import SECRET
from tests.dsf.agent import servers
from tests.dsf.agent.builders import sent, summary
from tests.dsf.agent.servers import Handler, Server, matrix, replying, serving

NOW = 1_700_000_000.0


@pytest.fixture
async def sources(managed: EmbeddedHub) -> AsyncIterator[Sources]:
    async with http_client() as client:
        limits = CallLimits(min_seconds=0.5, max_seconds=120, max_bytes=1 << 20)
        yield Sources(
            client, AgentSecrets(managed, "dynamic-scoring", IssuedTokens(client)), limits
        )


@pytest.fixture
async def prometheus() -> AsyncIterator[Server]:
    async with serving(replying(matrix(({"pod": "a"}, [[1, "1.5"]])))) as server:
        yield server


def asking(server: Server, **changes: Any) -> Any:
    return summary(source_endpoint=f"{server.url}/api/v1/query_range", **changes)


async def failed(sources: Sources, asked: Any) -> Failure:
    found = await sources.fetch(asked, NOW)
    assert isinstance(found, Failure)
    assert found.stage == "source"
    return found


async def create_secret(managed: EmbeddedHub, value: str) -> None:
    await managed.create(
        SECRET,
        {
            "metadata": {"name": "prometheus-auth", "namespace": "dynamic-scoring"},
            "type": "Opaque",
            "data": {"token": b64encode(value.encode()).decode()},
        },
    )


async def test_a_range_is_queried(sources: Sources, prometheus: Server) -> None:
    found = await sources.fetch(asking(prometheus, source_range=60, source_step=5), NOW)

    assert isinstance(found, FetchedSeries)
    assert sent(found) == [{"metric": {"pod": "a"}, "values": [[1, "1.5"]]}]
    (call,) = prometheus.calls
    assert (call.method, call.path) == ("GET", "/api/v1/query_range")
    assert call.parameters == {
        "query": "up",
        "start": "1699999940.000",
        "end": "1700000000.000",
        "step": "5",
    }


async def test_a_long_query_goes_by_post(sources: Sources, prometheus: Server) -> None:
    query = 'up{x="é"} + ' * 300 + "up"
    assert isinstance(
        await sources.fetch(asking(prometheus, source_query=query), NOW), FetchedSeries
    )
    (call,) = prometheus.calls
    assert call.method == "POST"
    assert call.parameters["query"] == query


async def test_several_queries_are_joined(sources: Sources, prometheus: Server) -> None:
    found = await sources.fetch(asking(prometheus, source_query='a{x=";"};b'), NOW)
    assert isinstance(found, FetchedSeries)
    assert len(found.series) == 2
    assert [call.parameters["query"] for call in prometheus.calls] == ['a{x=";"}', "b"]


async def test_several_queries_share_one_deadline(sources: Sources, prometheus: Server) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.1)
        return await replying(matrix())(request)

    prometheus.answer = slow
    asked = asking(prometheus, source_query=";".join(["up"] * 50), scoring_interval=0)
    assert (await failed(sources, asked)).reason == "DeadlineExceeded"
    assert len(prometheus.calls) < 50


async def test_a_token_from_a_secret_is_sent_and_its_rotation_acts_at_once(
    sources: Sources, prometheus: Server, managed: EmbeddedHub
) -> None:
    await create_secret(managed, "first-token\n")
    asked = asking(
        prometheus, source_endpoint_auth_name="prometheus-auth", source_endpoint_auth_key="token"
    )
    await sources.fetch(asked, NOW)
    rotated = {"data": {"token": b64encode(b"second-token").decode()}}
    await managed.patch(SECRET, "prometheus-auth", rotated, "dynamic-scoring")
    await sources.fetch(asked, NOW)

    sent = [call.headers.get("Authorization") for call in prometheus.calls]
    assert sent == ["Bearer first-token", "Bearer second-token"]


async def test_a_missing_secret_sends_nothing(sources: Sources, prometheus: Server) -> None:
    asked = asking(prometheus, source_endpoint_auth_name="gone", source_endpoint_auth_key="token")
    found = await failed(sources, asked)
    assert found.reason == "SecretNotFound"
    assert "dynamic-scoring/gone" in found.message
    assert prometheus.calls == []


@pytest.mark.parametrize("type_", ["None", "none", ""])
async def test_no_source_is_an_empty_list(sources: Sources, type_: str) -> None:
    assert await sources.fetch(summary(source_type=type_), NOW) == FetchedSeries()


async def test_the_type_counts_in_any_case(sources: Sources, prometheus: Server) -> None:
    asked = asking(prometheus, source_type="prometheus")
    assert isinstance(await sources.fetch(asked, NOW), FetchedSeries)


async def test_other_types_are_named(sources: Sources) -> None:
    found = await failed(sources, summary(source_type="Graphite"))
    assert found.reason == "UnsupportedSource"
    assert "Graphite" in found.message


async def test_an_agent_that_receives_nothing_says_how_it_could(sources: Sources) -> None:
    found = await failed(sources, summary(source_type="OpenTelemetry"))
    assert found.reason == "NotReceiving"
    assert "--otlp" in found.message


async def test_an_empty_query_is_named(sources: Sources, prometheus: Server) -> None:
    assert (await failed(sources, asking(prometheus, source_query=" ; "))).reason == "EmptyQuery"


async def test_an_endpoint_that_is_no_url(sources: Sources) -> None:
    for endpoint in ("", "prometheus:9090", "http://[::1"):
        found = await failed(sources, summary(source_endpoint=endpoint))
        assert found.reason == "InvalidURL"


async def test_no_token_goes_to_a_host_that_the_secret_does_not_list(
    sources: Sources, prometheus: Server, managed: EmbeddedHub
) -> None:
    await create_secret(managed, "canary")
    annotation = "dynamic-scoring.open-cluster-management.io/allowed-hosts"
    asked = asking(
        prometheus, source_endpoint_auth_name="prometheus-auth", source_endpoint_auth_key="token"
    )
    for listed, reached in (("prometheus.example", 0), ("127.0.0.1", 1)):
        patch = {"metadata": {"annotations": {annotation: listed}}}
        await managed.patch(SECRET, "prometheus-auth", patch, "dynamic-scoring")
        await sources.fetch(asked, NOW)
        assert len(prometheus.calls) == reached
    assert prometheus.calls[0].headers["Authorization"] == "Bearer canary"


async def test_all_queries_share_one_limit_of_size(sources: Sources, prometheus: Server) -> None:
    series = [({"a": "x" * 60_000, "b": str(number)}, []) for number in range(5)]
    prometheus.answer = replying(matrix(*series))
    assert isinstance(
        await sources.fetch(asking(prometheus, source_query="a;b;c"), NOW), FetchedSeries
    )
    found = await failed(sources, asking(prometheus, source_query="a;b;c;d"))
    assert found.reason == "ResponseTooLarge"


async def test_of_equal_warnings_one_is_kept(sources: Sources, prometheus: Server) -> None:
    prometheus.answer = replying(matrix(warnings=["no store matched"]))
    found = await sources.fetch(asking(prometheus, source_query="a;b"), NOW)
    assert found == FetchedSeries(warnings=('"no store matched"',))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def secured(authority: trustme.CA) -> AsyncIterator[Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    async with serving(replying(matrix()), context) as server:
        yield server


def trusting(server: Server, **changes: Any) -> Any:
    return asking(
        server, source_endpoint_ca_name="prometheus-ca", source_endpoint_ca_key="ca.crt", **changes
    )


async def store_authority(managed: EmbeddedHub, pem: bytes) -> None:
    body = {"data": {"ca.crt": b64encode(pem).decode()}}
    metadata = {"name": "prometheus-ca", "namespace": "dynamic-scoring"}
    try:
        await managed.create(SECRET, {"metadata": metadata, **body})
    except AlreadyExists:
        await managed.patch(SECRET, "prometheus-ca", body, "dynamic-scoring")


async def test_an_authority_of_ones_own(
    sources: Sources, secured: Server, managed: EmbeddedHub, authority: trustme.CA
) -> None:
    found = await failed(sources, asking(secured))
    assert found.reason == "CertificateNotTrusted"
    assert "tls.caSecretRef" in found.message

    await store_authority(managed, trustme.CA().cert_pem.bytes())
    assert (await failed(sources, trusting(secured))).reason == "CertificateNotTrusted"

    await store_authority(managed, authority.cert_pem.bytes())
    assert await sources.fetch(trusting(secured), NOW) == FetchedSeries()


async def test_an_authority_that_is_none(
    sources: Sources, secured: Server, managed: EmbeddedHub
) -> None:
    assert (await failed(sources, trusting(secured))).reason == "SecretNotFound"
    await store_authority(managed, b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
    found = await failed(sources, trusting(secured))
    assert found.reason == "InvalidAuthority"
    assert "tls.caSecretRef" in found.message
    assert secured.calls == []


async def test_a_tenant_is_sent_with_every_query(sources: Sources) -> None:
    long = "up{" + "a" * 3000 + "}"
    async with serving(replying(matrix())) as server:
        for tenant in ("", "team-a|team-b"):
            asked = asking(server, source_query=f"up; {long}", source_endpoint_tenant=tenant)
            assert await sources.fetch(asked, NOW) == FetchedSeries()
    sent = [(call.method, call.headers.get("X-Scope-OrgID")) for call in server.calls]
    assert sent == [("GET", None), ("POST", None), *((m, "team-a|team-b") for m in ("GET", "POST"))]


@pytest.mark.parametrize(
    "tenant", ["a b", "a\r\nX-Evil: 1", "a\n", "a||b", "|", "é", "a/b", "x" * 1025]
)
def test_what_is_no_tenant_comes_in_no_summary(tenant: str) -> None:
    told = json.loads(dump_summaries([summary(source_endpoint_tenant="team-a")]))
    told[0]["sourceEndpointTenant"] = tenant
    refused = load_summaries(json.dumps(told))
    assert isinstance(refused, InvalidInput)
    assert "sourceEndpointTenant" in refused.message


async def test_the_agents_own_token(
    managed: EmbeddedHub, secured: Server, authority: trustme.CA, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("canary", encoding="ascii")
    await store_authority(managed, authority.cert_pem.bytes())
    asked = trusting(secured, source_endpoint_auth_service_account=True)
    async with http_client() as client:
        for allowed in ((), ("localhost",)):
            own = ServiceAccount(allowed, tmp_path / "token")
            secrets = AgentSecrets(managed, "dynamic-scoring", IssuedTokens(client), own)
            found = await Sources(client, secrets, CallLimits()).fetch(asked, NOW)
            assert isinstance(found, FetchedSeries if allowed else Failure)
    (call,) = secured.calls
    assert call.headers["Authorization"] == "Bearer canary"


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (servers.breaking, "Unreachable"),
        (servers.endless, "ResponseTooLarge"),
        (servers.dripping, "DeadlineExceeded"),
        (servers.hanging, "DeadlineExceeded"),
        (replying(b"", 302, {"Location": "http://evil.example/"}), "Redirected"),
        (replying(b"", 403), "Unauthorized"),
        (replying(b"", 500), "ServerError"),
        (replying(b"<html>Sign in</html>", 200, {"Content-Type": "text/html"}), "InvalidResponse"),
        (
            replying(gzip.compress(bytes(1 << 24)), headers={"Content-Encoding": "gzip"}),
            "ResponseTooLarge",
        ),
    ],
)
async def test_a_broken_source_is_named_and_heals(
    sources: Sources, prometheus: Server, handler: Handler, reason: str
) -> None:
    healthy, prometheus.answer = prometheus.answer, handler
    assert (await failed(sources, asking(prometheus, scoring_interval=0))).reason == reason
    prometheus.answer = healthy
    assert isinstance(await sources.fetch(asking(prometheus), NOW), FetchedSeries)
