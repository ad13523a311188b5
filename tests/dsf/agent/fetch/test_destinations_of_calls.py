"""A stranger's `/config` can't make an agent connect to a denied address.

A resolver of the test answers every name. The connections are those of the hub's prober, whose
tests have further spellings of addresses.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import AgentSecrets
from dsf.agent.fetch.http_client import HttpClient, http_client
from dsf.agent.fetch.http_exchange import CallDeadline, CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.fetch.sources import Sources
from dsf.outbound.destinations import Destinations, destinations
from dsf.outbound.pinned_connections import NameLookups
from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import Server, matrix, replying, scores, serving

LIMITS = CallLimits(min_seconds=5.0)
IN_POD = {"denied_cidrs": ["127.0.0.0/8", "::1/128"]}
"""The chart's rules."""

Called = Callable[[HttpClient, str], Awaitable[object]]


async def from_source(client: HttpClient, url: str) -> object:
    sources = Sources(client, AgentSecrets(None, "dynamic-scoring", IssuedTokens(client)), LIMITS)
    return await sources.fetch(summary(source_endpoint=url), 0.0)


async def to_scorer(client: HttpClient, url: str) -> object:
    api = ScoringApi(
        "worker01", client, AgentSecrets(None, "dynamic-scoring", IssuedTokens(client)), LIMITS
    )
    return await api.call(summary(scoring_endpoint=url), (), CallDeadline.within(5.0))


CALLS = pytest.mark.parametrize("call", [from_source, to_scorer])


def rules(**lists: list[str]) -> Destinations:
    made = destinations(**lists)  # type: ignore[arg-type]  # the names are checked by the call
    assert isinstance(made, Destinations)
    return made


@asynccontextmanager
async def client_with(*answers: list[str], **lists: Any) -> AsyncIterator[HttpClient]:
    """Yield a client whose resolver gives one answer after the other, and keeps to the last."""
    left = list(answers)

    def resolve(_: str) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    async with http_client(rules(**lists), NameLookups(resolve)) as client:
        yield client


def denied(found: object) -> str:
    assert isinstance(found, Failure), found
    assert found.reason == "Denied", found
    return found.message


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that the HTTP library connects to; only those on loopback answer."""
    hosts = list[str]()
    connect = anyio.connect_tcp

    async def noted(remote_host: str, *rest: Any, **options: Any) -> Any:
        hosts.append(remote_host)
        if not remote_host.startswith("127."):
            raise OSError(f"a test may not connect to {remote_host}")
        return await connect(remote_host, *rest, **options)

    monkeypatch.setattr(anyio, "connect_tcp", noted)
    return hosts


@CALLS
@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254"])
async def test_a_name_of_metadata_is_denied_by_default(
    call: Called, address: str, connected: list[str]
) -> None:
    async with client_with([address]) as client:
        message = denied(await call(client, "http://prometheus.example/api/v1/query_range"))
    assert "prometheus.example" in message
    assert address not in message
    assert connected == []


@CALLS
async def test_loopback_is_denied_by_the_rules_of_the_chart(call: Called) -> None:
    async with (
        serving(replying(scores())) as server,
        client_with(["127.0.0.1"], **IN_POD) as client,
    ):
        denied(await call(client, server.url))
        denied(await call(client, server.url.replace("127.0.0.1", "scorer.example")))
        assert server.calls == []


@CALLS
async def test_the_checked_address_is_the_one_connected_to(
    call: Called, connected: list[str]
) -> None:
    """A name server that changes its answer after the check gains nothing."""
    async with _good(call) as server, client_with(["127.0.0.1"], ["169.254.169.254"]) as client:
        found = await call(client, server.url.replace("127.0.0.1", "rebinding.example"))
        assert not isinstance(found, Failure), found
        (received,) = server.calls
    assert connected == ["127.0.0.1"]
    assert received.headers["Host"].startswith("rebinding.example:")


@CALLS
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_leads_nowhere(call: Called, status: int, connected: list[str]) -> None:
    headers = {"Location": "http://169.254.169.254/latest"}
    async with serving(replying(b"", status, headers)) as server, http_client() as client:
        await call(client, server.url)
    assert connected == ["127.0.0.1"]


@asynccontextmanager
async def _good(call: Called) -> AsyncIterator[Server]:
    body = matrix() if call is from_source else scores()
    async with serving(replying(body)) as server:
        yield server
