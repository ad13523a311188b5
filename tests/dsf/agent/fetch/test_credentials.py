"""Watched Secrets are read from the cache, and a refused token bypasses it."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from dsf.agent.fetch.credentials import (
    BYTES_LIMIT,
    AgentSecrets,
    CalledEndpoint,
    EndpointCredentials,
    ServiceAccount,
    WatchedSecrets,
)
from dsf.agent.fetch.http_client import HttpClient, http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.secret_data import Token
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import NAMESPACE, SECRET
from dsf.kube.port import Kube
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE
from tests.dsf.agent.servers import replying, scores, serving
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call

CANARY = b"canary-3f2a"


async def test_no_secret_named_is_no_token() -> None:
    assert (
        await AgentSecrets(None, "dynamic-scoring", IssuedTokens(HttpClient())).credentials(
            CalledEndpoint("http://h")
        )
        == EndpointCredentials()
    )


async def test_without_an_api_server_no_secret_can_be_read() -> None:
    found = await AgentSecrets(None, "dynamic-scoring", IssuedTokens(HttpClient())).credentials(
        CalledEndpoint("http://h", "api-auth", "token")
    )
    assert isinstance(found, InvalidInput)
    assert found.reason == "SecretUnreadable"


async def test_a_missing_right_is_told_with_the_value_that_grants_it(managed: EmbeddedHub) -> None:
    denied = Faulty(managed, lambda _: Fault(Forbidden("no right")))
    found = await AgentSecrets(denied, AGENT_NAMESPACE, IssuedTokens(HttpClient())).credentials(
        CalledEndpoint("https://h", "api-auth", "token")
    )
    assert found == InvalidInput(
        "SecretUnreadable",
        "the agent may not read Secret dynamic-scoring/api-auth: if the chart's"
        " spokeSetting.agent.secretNames names Secrets, add it there",
    )


@pytest.fixture
def own(tmp_path: Path) -> ServiceAccount:
    path = tmp_path / "token"
    path.write_bytes(CANARY)
    return ServiceAccount(path=path)


async def test_the_agents_own_token_is_read_at_each_call(own: ServiceAccount) -> None:
    for text in ("first", "rotated\n"):
        own.path.write_text(text, encoding="ascii")
        token = await own.token("https://thanos.monitoring.svc:9091/api/v1/query")
        assert token == Token(text.strip())


@pytest.mark.parametrize(
    "url", ["http://thanos.monitoring.svc/", "https://thanos.example/", "https://evil.svc.example"]
)
async def test_the_agents_own_token_stays_in_the_cluster(own: ServiceAccount, url: str) -> None:
    found = await own.token(url)
    assert isinstance(found, InvalidInput)
    assert found.reason == "HostNotAllowed"
    assert "--service-account-token-hosts" in found.message


async def test_an_agent_outside_a_cluster_has_no_token(own: ServiceAccount) -> None:
    own.path.unlink()
    found = await own.token("https://thanos.monitoring.svc/")
    assert isinstance(found, InvalidInput)
    assert found.reason == "TokenUnreadable"


API = CalledEndpoint("https://a.example/", "api-auth", "token")


def data(token: str) -> dict[str, Any]:
    return {"data": {"token": b64encode(token.encode()).decode()}}


async def create(kube: Kube, token: str, name: str = "api-auth", **metadata: Any) -> None:
    obj = {"metadata": {"name": name, "namespace": AGENT_NAMESPACE, **metadata}}
    await kube.create(SECRET, {**obj, "type": "Opaque", **data(token)})


async def rotate(kube: Kube, token: str) -> None:
    await kube.patch(SECRET, "api-auth", data(token), AGENT_NAMESPACE)


@asynccontextmanager
async def watching(kube: Kube, *names: str) -> AsyncIterator[AgentSecrets]:
    watched = WatchedSecrets(kube, AGENT_NAMESPACE, names)
    task = asyncio.create_task(watched.run())
    try:
        yield AgentSecrets(kube, AGENT_NAMESPACE, IssuedTokens(HttpClient()), watched=watched)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def known(secrets: AgentSecrets, name: str = "api-auth") -> None:
    async def found() -> bool:
        return secrets.watched is not None and secrets.watched.find(name) is not None

    await eventually(found)


async def token(secrets: AgentSecrets, endpoint: CalledEndpoint = API) -> str:
    found = await secrets.token(endpoint)
    assert isinstance(found, Token | InvalidInput)
    return found.value if isinstance(found, Token) else found.reason


def gets(counting: Counting) -> int:
    return sum(count for (verb, _), count in counting.calls.items() if verb == "get")


async def test_a_watched_token_costs_no_call_and_a_rotated_one_acts(managed: EmbeddedHub) -> None:
    counting = Counting(managed)
    await create(managed, "first")
    async with watching(counting, "api-auth") as secrets:
        await known(secrets)
        assert [await token(secrets) for _ in range(100)] == ["first"] * 100
        await rotate(managed, "second")

        async def rotated() -> bool:
            return await token(secrets) == "second"

        await eventually(rotated)
        assert gets(counting) == 0
        await managed.delete(SECRET, "api-auth", AGENT_NAMESPACE)

        async def gone() -> bool:
            return await token(secrets) == "SecretNotFound"

        await eventually(gone)
        await create(managed, "third")
        await known(secrets)
        asked = gets(counting)
        assert await token(secrets) == "third"
        assert gets(counting) == asked


async def test_only_the_secrets_named_are_listed_and_watched() -> None:
    """Each request selects one name, because RBAC can allow only that."""
    asked = list[str]()

    class Noting(EmbeddedHub):
        async def list(self, *args: Any, **more: Any) -> Any:
            asked.append(more["fields"])
            return await super().list(*args, **more)

        def watch(self, *args: Any, **more: Any) -> Any:
            asked.append(more["fields"])
            return super().watch(*args, **more)

    kube = Noting()
    await kube.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    for name in ("api-auth", "not-named"):
        await create(kube, "canary", name)
    async with watching(kube, "api-auth") as secrets:
        await known(secrets)
        assert await token(secrets, CalledEndpoint("https://a/", "not-named", "token")) == "canary"
        assert set(asked) == {"metadata.name=api-auth"}


async def test_who_may_not_watch_asks_at_each_call(managed: EmbeddedHub) -> None:
    counting = Counting(managed)

    def schedule(call: Call) -> Fault | None:
        return Fault(Forbidden("no right")) if call.verb in {"list", "watch"} else None

    await create(managed, "first")
    async with watching(Faulty(counting, schedule), "api-auth") as secrets:
        assert [await token(secrets) for _ in range(3)] == ["first"] * 3
        await rotate(managed, "second")
        assert await token(secrets) == "second"
        assert gets(counting) == 4


async def test_a_token_that_was_not_accepted_is_read_anew(managed: EmbeddedHub) -> None:
    """A watch may have died in silence, and would be noticed minutes later only."""
    frozen = asyncio.Event()

    class Frozen(EmbeddedHub):
        async def watch(self, *_: Any, **__: Any) -> Any:
            frozen.set()
            await asyncio.Event().wait()
            yield

    kube = Frozen()
    await kube.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    await create(kube, "first")
    counting = Counting(kube)
    async with watching(counting, "api-auth") as secrets:
        await frozen.wait()
        await rotate(kube, "second")
        assert await token(secrets) == "first"
        async with _calling(secrets, status=401) as call:
            assert await call() == ["Bearer first"]
            assert gets(counting) == 0
            assert await call() == ["Bearer first", "Bearer second"]
        assert gets(counting) == 1
        # Further calls, until the watch shows another version.
        assert [await token(secrets) for _ in range(2)] == ["second"] * 2


async def test_a_secret_that_is_missing_is_looked_for_at_each_call() -> None:
    class Frozen(EmbeddedHub):
        async def watch(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()
            yield

    kube = Frozen()
    await kube.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    counting = Counting(kube)
    async with watching(counting, "api-auth") as secrets:

        async def watched() -> bool:
            return counting.calls["list", "secrets"] > 0

        await eventually(watched)
        assert await token(secrets) == "SecretNotFound"
        await create(kube, "first")
        assert await token(secrets) == "first"


async def test_a_large_secret_is_not_kept(managed: EmbeddedHub) -> None:
    counting = Counting(managed)
    await create(managed, "x" * BYTES_LIMIT)
    async with watching(counting, "api-auth") as secrets:
        assert secrets.watched is not None

        async def synced() -> bool:
            return sum(counting.calls.values()) > 1

        await eventually(synced)
        assert await token(secrets) == "InvalidToken"
        assert gets(counting) == 1


async def test_the_hosts_that_may_have_a_token_are_watched_too(managed: EmbeddedHub) -> None:
    hosts = "dynamic-scoring.open-cluster-management.io/allowed-hosts"
    await create(managed, "first", annotations={hosts: "b.example", "other": "kept by nobody"})
    async with watching(managed, "api-auth") as secrets:
        await known(secrets)
        assert await token(secrets) == "HostNotAllowed"


@pytest.mark.parametrize("count", [0, 40])
async def test_the_watches_are_limited(managed: EmbeddedHub, count: int) -> None:
    counting = Counting(managed)
    async with watching(counting, *(f"s{n:02}" for n in range(count))) as secrets:
        for _ in range(20):
            await asyncio.sleep(0)
        assert counting.calls["list", "secrets"] == min(count, 32)
        assert (
            await token(secrets, CalledEndpoint("https://a/", "s39", "token")) == "SecretNotFound"
        )


@asynccontextmanager
async def _calling(secrets: AgentSecrets, status: int) -> AsyncIterator[Callable[[], Any]]:
    """Call a scoring API that answers with a status; tell what it was sent so far."""
    async with serving(replying(scores(), status)) as server, http_client() as client:
        api = ScoringApi("worker01", client, secrets, CallLimits())
        scorer = summary(
            scoring_endpoint=f"{server.url}/scoring",
            scoring_endpoint_auth_name="api-auth",
            scoring_endpoint_auth_key="token",
        )

        async def call() -> list[str]:
            deadline = api.deadline(scorer)
            answer = await api.call(scorer, [], deadline)
            if isinstance(answer, HttpAnswer):
                await api.results(scorer, answer, deadline)
            return [made.headers["Authorization"] for made in server.calls]

        yield call
