"""Pushes to a running agent: real scorers, a real door, a hub in memory."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from aiohttp import web

from dsf.agent.push_receiver import MAX_BYTES, PushSettings
from dsf.agent.run import AgentSettings, run
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, SECRET
from dsf.kube.port import Kube
from dsf.runtime.watched_certificate import WatchedCertificate
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.servers import Server, replying, scores, serving
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting

TOKEN, OTHER = "t0p.s3cret~of+first/scorer==", "token-of-the-second-scorer"
HOUR = 3600


@dataclass
class Door:
    """An agent that receives pushes, and the scorers `first`, `second` and `open` (no token)."""

    hub: EmbeddedHub
    managed: Counting
    scorer: Server
    url: str = ""
    metrics_url: str = ""
    trusted: ssl.SSLContext | bool = True

    async def push(
        self, scorer: str = "first", token: str | None = TOKEN, **more: Any
    ) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= more.pop("headers", {})
        async with httpx.AsyncClient(trust_env=False, verify=self.trusted) as client:
            method, path = more.pop("method", "POST"), more.pop("path", f"/score/{scorer}")
            return await client.request(method, self.url + path, headers=headers, **more)

    async def refused(self, status: int, reason: str, **push: Any) -> httpx.Response:
        """Push, and check that the answer is that problem and nothing was called."""
        before = self.count()
        answer = await self.push(**push)
        assert (answer.status_code, answer.json()["reason"]) == (status, reason), answer.text
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert answer.json()["type"].startswith("urn:dynamic-scoring-framework:problem:")
        assert TOKEN not in answer.text
        assert self.count() == before
        return answer

    async def value(self, score: str = "first-score") -> int | None:
        try:
            found = await self.hub.get(ADD_ON_PLACEMENT_SCORE, score, CLUSTER)
        except NotFound:
            return None
        return next((one["value"] for one in (found.get("status") or {}).get("scores", [])), None)

    async def metrics(self) -> str:
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(f"{self.metrics_url}/metrics")).text

    def scoring(self, value: float) -> None:
        self.scorer.answer = replying(scores(({"pod": "a"}, value)))

    async def published(self, value: int) -> None:
        async def there() -> bool:
            return await self.value() == value

        await eventually(there)

    def count(self) -> int:
        return len([call for call in self.scorer.calls if call.path == "/first"])

    async def calls(self, count: int) -> None:
        async def made() -> bool:
            return self.count() >= count

        await eventually(made)


def hourly(name: str, url: str, **changes: Any) -> ScorerSummary:
    fields = {
        "source_type": "none",
        "scoring_endpoint": f"{url}/{name}",
        "scoring_interval": HOUR,
        "score_dimension_format": "${pod}",
        "scoring_endpoint_auth_name": f"{name}-token",
        "scoring_endpoint_auth_key": "token",
    }
    return summary(name, **(fields | changes))


async def distribute(managed: Kube, *summaries: ScorerSummary) -> None:
    metadata = {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE}
    data = {"summaries": dump_summaries(summaries)}
    await managed.create(CONFIG_MAP, {"metadata": metadata, "data": data})


async def give_token(managed: Kube, scorer: str, token: str) -> None:
    data = {"token": base64.b64encode(token.encode()).decode()}
    metadata = {"name": f"{scorer}-token", "namespace": AGENT_NAMESPACE}
    await managed.create(SECRET, {"metadata": metadata, "type": "Opaque", "data": data})


@asynccontextmanager
async def receiving(
    hub: EmbeddedHub, managed: EmbeddedHub, push: PushSettings | None = None, interval: int = HOUR
) -> AsyncIterator[Door]:
    """Run an agent until the first round of `first` is published with value 1."""
    own = Counting(managed)
    async with serving(replying(scores(({"pod": "a"}, 1)))) as scorer:
        await give_token(own, "first", TOKEN)
        await give_token(own, "second", OTHER)
        summaries = [
            hourly("first", scorer.url, scoring_interval=interval),
            hourly("second", scorer.url),
            hourly("open", scorer.url, scoring_endpoint_auth_name=""),
        ]
        await distribute(managed, *summaries)
        push = push or PushSettings("127.0.0.1:0", min_interval=HOUR)
        async with running_agent(hub, own, push) as (push_url, metrics_url):
            door = Door(hub, own, scorer, push_url, metrics_url)
            await door.published(1)
            yield door


@asynccontextmanager
async def running_agent(
    hub: Kube, managed: Kube, push: PushSettings
) -> AsyncIterator[tuple[str, str]]:
    """Run an agent, and yield the URLs for pushes and for metrics."""
    settings = AgentSettings(cluster=CLUSTER, metrics_bind_address="127.0.0.1:0", push=push)
    urls: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    pushes: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    told = {"listening": urls.set_result, "receiving_push": pushes.set_result}
    running = asyncio.create_task(run(settings, hub=hub, managed=managed, **told))
    try:
        yield await pushes, await urls
        assert not running.done(), "the agent has ended by itself"
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.fixture
async def door(hub: EmbeddedHub, managed: EmbeddedHub) -> AsyncIterator[Door]:
    async with receiving(hub, managed) as door:
        yield door


async def test_a_push_publishes_the_score_of_now(door: Door) -> None:
    door.scoring(7)
    assert (await door.push()).status_code == 202
    await door.published(7)
    text = await door.metrics()
    assert 'dynamic_scoring_pushes_total{outcome="Accepted",score_name="first_score"} 1.0' in text
    assert 'dynamic_scoring_push_seconds_count{score_name="first_score"} 1.0' in text


async def test_each_refusal_has_its_reason_and_starts_nothing(door: Door) -> None:
    missing = await door.refused(401, "TokenMissing", token=None)
    assert missing.headers["www-authenticate"] == "Bearer"
    wrong = await door.refused(401, "WrongToken", token=OTHER)
    assert "invalid_token" in wrong.headers["www-authenticate"]
    await door.refused(401, "TokenMissing", token=None, headers={"Authorization": f"Basic {TOKEN}"})
    await door.refused(401, "WrongToken", token=TOKEN[:-1])
    await door.refused(401, "WrongToken", token=None, headers=[("Authorization", b"Bearer \xff")])
    await door.refused(404, "UnknownScorer", scorer="nobody")
    await door.refused(403, "ScorerHasNoToken", scorer="open")
    await door.refused(413, "BodyTooLarge", content=b"x" * (MAX_BYTES + 1))
    await door.refused(400, "MalformedBody", content=b"x", headers={"Content-Encoding": "gzip"})
    await door.refused(422, "UnexpectedContent", json={"active": True})
    await door.refused(422, "UnexpectedContent", params={"when": "later"})
    allowed = await door.refused(405, "MethodNotAllowed", method="GET")
    assert allowed.headers["allow"] == "POST"
    await door.refused(404, "NotFound", path="/metrics")
    assert (await door.push(json={})).status_code == 202

    text = await door.metrics()
    for outcome, count in {"WrongToken": 3, "TokenMissing": 2, "BodyTooLarge": 1}.items():
        labels = f'outcome="{outcome}",score_name="first_score"'
        assert f"dynamic_scoring_pushes_total{{{labels}}} {count}.0" in text
    assert 'outcome="UnknownScorer",score_name=""' in text
    assert TOKEN not in text


async def test_pushes_are_limited_per_scorer_and_say_when_the_next_one_is_due(door: Door) -> None:
    await door.push()
    await door.calls(2)
    answer = await door.refused(429, "TooManyPushes")
    assert HOUR - 60 < int(answer.headers["retry-after"]) <= HOUR
    assert (await door.push("second", OTHER)).status_code == 202


async def test_pushes_during_a_round_make_one_more(hub: EmbeddedHub, managed: EmbeddedHub) -> None:
    async with receiving(hub, managed, PushSettings("127.0.0.1:0", min_interval=0)) as door:
        held = asyncio.Event()

        async def waiting(request: web.Request) -> web.StreamResponse:
            await held.wait()
            return await replying(scores(({"pod": "a"}, 5)))(request)

        door.scorer.answer = waiting
        await door.push()
        await door.calls(2)
        for _ in range(3):
            assert (await door.push()).status_code == 202
        held.set()
        await door.calls(3)
        await door.published(5)

        async def ended() -> bool:
            counted = 'dynamic_scoring_push_seconds_count{score_name="first_score"} 2.0'
            return counted in await door.metrics()

        await eventually(ended)
        assert door.count() == 3


async def test_a_paused_scorer_is_not_called_out_of_turn(
    hub: EmbeddedHub, managed: EmbeddedHub
) -> None:
    async with receiving(hub, managed, PushSettings("127.0.0.1:0", min_interval=0)) as door:
        door.scorer.answer = replying({}, status=503, headers={"Retry-After": "600"})
        await door.push()
        await door.calls(2)

        async def failed() -> bool:
            return 'status="scoring_failed"} 1.0' in await door.metrics()

        await eventually(failed)
        answer = await eventually(lambda: _paused(door))
        assert 500 < int(answer.headers["retry-after"]) <= 600
        await door.refused(503, "ScorerPaused")


async def _paused(door: Door) -> httpx.Response | None:
    answer = await door.push()
    return answer if answer.status_code == 503 else None


async def test_a_token_that_cannot_be_read_is_told_to_the_log_only(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    await door.managed.delete(SECRET, "first-token", AGENT_NAMESPACE)
    answer = await door.refused(503, "TokenUnavailable")
    assert "first-token" not in answer.text
    assert any("first-token" in str(vars(record)) for record in caplog.records)
    assert not any(TOKEN in str(vars(record)) for record in caplog.records)


async def test_strangers_cause_few_reads_of_secrets(door: Door) -> None:
    before = door.managed.calls["get", "secrets"]
    await asyncio.gather(*(door.refused(401, "WrongToken", token="guess") for _ in range(50)))
    assert door.managed.calls["get", "secrets"] - before < 25


async def test_pushes_over_https(hub: EmbeddedHub, managed: EmbeddedHub, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    settings = PushSettings("127.0.0.1:0", certificate=WatchedCertificate(certificate, key))
    async with receiving(hub, managed, settings) as door:
        assert door.url.startswith("https://")
        door.trusted = ssl.create_default_context()
        authority.configure_trust(door.trusted)
        assert (await door.push()).status_code == 202
        door.trusted = True
        with pytest.raises(httpx.ConnectError):
            await door.push()
