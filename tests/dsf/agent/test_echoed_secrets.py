"""Servers that repeat the token of a call in every part of their answers: the agent hides it.

Each scorer below calls a server that echoes in one way. The tests search all output for pieces of
the tokens: the objects on the hub, the log, the metrics, and the text of a dry run.
"""

import asyncio
import contextlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from aiohttp import web

from dsf.agent.dry_run import explained, perform_once, render
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.run import AgentSettings, run
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, SECRET
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.servers import matrix, scores, serving
from tests.eventually import eventually
from tests.spellings import PIECE, SPELLINGS, spelled_pieces

LIMITS = CallLimits(min_seconds=600, max_seconds=600, max_bytes=1 << 20)
SERIES = ({"node": "n1"}, [[1, "1.5"]])

Answer = Callable[[str], web.Response]


def answer(body: Any, status: int = 200, **headers: str) -> web.Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(body=raw, status=status, headers={"Content-Type": "a/b", **named})


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


def as_json(document: Any, token: str) -> bytes:
    """Return JSON in which every character of the token is escaped."""
    return json.dumps(document).replace(json.dumps(token)[1:-1], escaped(token)).encode()


HTTP: Mapping[str, Answer] = {
    "text": lambda t: answer(f"bad header {t}".encode(), 401),
    "text-200": lambda t: answer(t.encode()),
    "repeated": lambda t: answer((t * 40).encode(), 500),
    "at-the-cut": lambda t: answer(b"x" * 290 + t.encode(), 500),
    "after-the-cut": lambda t: answer((b"x " * 130 + t.encode()) * 20, 500),
    "json": lambda t: answer({"error": t}, 500),
    "escaped": lambda t: answer(as_json({"error": t}, t), 500),
    "slashes": lambda t: answer(json.dumps({"e": t}).replace("/", "\\/").encode(), 500),
    "percent": lambda t: answer(quote(t, safe="").encode(), 404),
    "latin": lambda t: answer(b"\xe9" + t.encode() + b"\xff", 500),
    "content-type": lambda t: answer(b"no", 500, Content_Type=t),
    "content-type-200": lambda t: answer(b"no", Content_Type=f"text/{t}"),
    "parameter": lambda t: answer(b"no", Content_Type=f"text/plain; charset={t}"),
    "location": lambda t: answer(b"", 302, Location=f"http://127.0.0.1/{t}"),
    "encoding": lambda t: answer(b"{}", Content_Encoding=t),
    "retry-after": lambda t: answer(b"", 429, Retry_After=t),
    "challenge": lambda t: answer(b"", 401, WWW_Authenticate=f"Bearer error={t}"),
    "date": lambda t: answer(b"", 503, Retry_After=t, Date=t),
    "header-name": lambda t: answer(b"", 500, **{f"X{''.join(filter(str.isalnum, t))}": "1"}),
    "reason": lambda t: web.Response(status=500, reason=t),
}

SOURCE: Mapping[str, Answer] = {
    **{
        f"error-{status}": lambda t, status=status: answer(  # type: ignore[misc]
            {"status": "error", "errorType": t, "error": f"you sent {t}"}, status
        )
        for status in (200, 400, 422, 500, 503)
    },
    "escaped-error": lambda t: answer(as_json({"status": "error", "error": t}, t), 400),
    "status": lambda t: answer({"status": t}),
    "warnings": lambda t: answer(matrix(SERIES, warnings=[t, f"{t} {t}"])),
    "infos": lambda t: answer(as_json(matrix(SERIES, infos=[t]), t)),
    "partial": lambda t: answer(matrix(SERIES, isPartial=t)),
    "unknown": lambda t: answer(matrix(SERIES, debug={t: t})),
    "data": lambda t: answer({"status": "success", "data": t}),
    "result-type": lambda t: answer({"status": "success", "data": {"resultType": t, "result": []}}),
    "result": lambda t: answer(
        {"status": "success", "data": {"resultType": "matrix", "result": t}}
    ),
    "string": lambda t: answer(
        {"status": "success", "data": {"resultType": "string", "result": [1, t]}}
    ),
    "label": lambda t: answer(matrix(({"node": t}, [[1, "1"]]))),
    "escaped-label": lambda t: answer(as_json(matrix(({"node": t}, [[1, "1"]])), t)),
    "label-name": lambda t: answer(matrix(({t: "n1"}, [[1, "1"]]))),
    "label-object": lambda t: answer(matrix(({t: {t: t}}, [[1, "1"]]))),  # type: ignore[dict-item]
    "sample": lambda t: answer(matrix(({"node": "n"}, [[1, t]]))),
    "escaped-sample": lambda t: answer(as_json(matrix(({"node": "n"}, [[1, t]])), t)),
    "time": lambda t: answer(matrix(({"node": "n"}, [[t, "1"]]))),
    "vector": lambda t: answer(
        {
            "status": "success",
            "data": {"resultType": "vector", "result": [{"metric": {"node": t}, "value": [1, t]}]},
        }
    ),
}

SCORING: Mapping[str, Answer] = {
    "results": lambda t: answer({"results": t}),
    "keys": lambda t: answer({t: []}),
    "unknown": lambda t: answer({**scores(({"node": "n"}, 1)), "debug": {t: t}}),
    "label": lambda t: answer(scores(({"node": t}, 1))),
    "escaped-label": lambda t: answer(as_json(scores(({"node": t}, 1)), t)),
    "in-a-label": lambda t: answer(scores(({"node": f"n1 {t} x"}, 1))),
    "meta": lambda t: answer(scores(({"node": "n", "meta": t}, 1))),
    "label-name": lambda t: answer(scores(({t: "n1"}, 1))),
    "label-object": lambda t: answer(scores(({t: {t: t}}, 1))),  # type: ignore[dict-item]
    "metric": lambda t: answer({"results": [{"metric": t, "score": 1}]}),
    "score": lambda t: answer(scores(({"node": "n"}, t))),
    "escaped-score": lambda t: answer(as_json(scores(({"node": "n"}, t)), t)),
    "second": lambda t: answer(scores(({"node": "n"}, 1), ({"node": "m"}, t))),
}

DOORS = {
    **{f"source-{name}": made for name, made in {**HTTP, **SOURCE}.items()},
    **{f"scoring-{name}": made for name, made in {**HTTP, **SCORING}.items()},
}

TOKENS = {
    "opaque": "canary+0af3/Zz91==~b7c5d2e8f6",
    "jwt-like": "hdr.0123456789abcdef.ABCDEF-ghijkl_mnopqr",
    "long": "".join(f"{number:x}-" for number in range(5000, 6100)),
}


SPELLED: Mapping[str, Answer] = {
    f"source-{door}-{name}": (lambda t, made=SOURCE[door], spell=spell: made(spell(t)))  # type: ignore[misc]
    for door in (
        "error-400",
        "error-500",
        "warnings",
        "result-type",
        "label",
        "label-name",
        "sample",
    )
    for name, spell in SPELLINGS.items()
} | {
    f"scoring-{door}-{name}": (lambda t, made=made, spell=spell: made(spell(t)))  # type: ignore[misc]
    for door, made in {
        "text": HTTP["text"],
        "json": HTTP["json"],
        "type": lambda t: answer(b"no", Content_Type=quote(t, safe=":%=\\")),
        **{name: SCORING[name] for name in ("label", "in-a-label", "meta", "label-name", "score")},
    }.items()
    for name, spell in SPELLINGS.items()
}
"""What a server says in the places that messages quote, in every spelling."""


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(token, marks=[pytest.mark.exhaustive] if name != "opaque" else [], id=name)
        for name, token in TOKENS.items()
    ],
)
async def test_no_token_comes_back_out(
    token: str, hub: EmbeddedHub, managed: EmbeddedHub, caplog: pytest.LogCaptureFixture
) -> None:
    shown = await _shown(DOORS, token, hub, managed, caplog)
    pieces = list(_pieces(token))
    assert [
        (name, piece) for name, text in shown.items() for piece in pieces if piece in text
    ] == []


@pytest.mark.exhaustive
@pytest.mark.fire(
    "no token comes back out in another spelling",
    "a server that spells it in each way in each place of an answer",
    count=len(SPELLED),
)
async def test_no_token_comes_back_out_in_another_spelling(
    hub: EmbeddedHub, managed: EmbeddedHub, caplog: pytest.LogCaptureFixture
) -> None:
    token = TOKENS["opaque"]
    shown = await _shown(SPELLED, token, hub, managed, caplog)
    assert {
        name: pieces for name, text in shown.items() if (pieces := spelled_pieces(token, text))
    } == {}


async def _shown(
    doors: Mapping[str, Answer],
    token: str,
    hub: EmbeddedHub,
    managed: EmbeddedHub,
    caplog: pytest.LogCaptureFixture,
) -> dict[str, str]:
    """Return all that comes out while each door answers one scorer, by where it was seen."""
    caplog.set_level("DEBUG")
    asked = set[str]()

    async def echo(request: web.Request) -> web.StreamResponse:
        side, door = request.path.strip("/").split("/")
        said = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if door.startswith(side):
            assert said == token
            asked.add(door)
            return doors[door](said)
        return answer(matrix(SERIES) if side == "source" else scores(({"node": "n"}, 1)))

    await _create_secret(managed, token)
    async with serving(echo) as server:
        summaries = [_summary(server.url, door) for door in doors]
        await managed.create(
            CONFIG_MAP,
            {
                "metadata": {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE},
                "data": {"summaries": dump_summaries(summaries)},
            },
        )
        settings = AgentSettings(cluster=CLUSTER, metrics_bind_address="127.0.0.1:0", limits=LIMITS)
        shown = {"metrics": await _run_until_scored(settings, hub, managed, len(doors))}
        for obj in (await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)).items:
            shown[f"object of {obj['metadata']['name']}"] = json.dumps(obj)
        for number, record in enumerate(caplog.records):
            if record.name.startswith("dsf"):
                shown[f"log {number}"] = record.getMessage() + str(vars(record))
        for explaining in (False, True):
            rounds = await perform_once(settings, managed, explaining=explaining)
            assert isinstance(rounds, tuple)
            for done in rounds:
                name = f"{'--explain' if explaining else '--once'} of {done.summary.name}"
                shown[name] = f"{done.failure} {done.report}" + (
                    explained([done])
                    if explaining
                    else render(CLUSTER, [done], datetime(2026, 1, 1, tzinfo=UTC))
                )
        for call in server.calls:  # no server gets the token of the other
            shown[f"request of {call.path}"] = call.body.decode()
    assert asked == set(doors)
    return shown


def _pieces(token: str) -> Iterator[str]:
    """Yield the pieces of a token, plain and escaped."""
    for start in range(0, len(token) - PIECE + 1, PIECE):
        piece = token[start : start + PIECE]
        yield from {piece, escaped(piece), quote(piece, safe=""), piece.replace("/", "\\/")}


def _summary(url: str, door: str) -> ScorerSummary:
    side = door.partition("-")[0]
    return summary(
        door,
        source_endpoint=f"{url}/source/{door}",
        scoring_endpoint=f"{url}/scoring/{door}",
        score_dimension_format="${node};${meta}",
        **{f"{side}_endpoint_auth_name": "auth", f"{side}_endpoint_auth_key": "token"},
    )


async def _create_secret(managed: EmbeddedHub, token: str) -> None:
    await managed.create(
        SECRET,
        {
            "metadata": {"name": "auth", "namespace": AGENT_NAMESPACE},
            "type": "Opaque",
            "data": {"token": b64encode(token.encode()).decode()},
        },
    )


async def _run_until_scored(
    settings: AgentSettings, hub: EmbeddedHub, managed: EmbeddedHub, count: int
) -> str:
    """Run an agent until every scorer has ended a round, and return its metrics."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        run(settings, hub=hub, managed=managed, listening=listening.set_result)
    )
    try:
        url = await listening
        async with httpx.AsyncClient(trust_env=False) as client:

            async def scored() -> str:
                page = await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)
                done = [obj for obj in page.items if obj.get("status", {}).get("conditions")]
                return (await client.get(f"{url}/metrics")).text if len(done) == count else ""

            return await eventually(scored, every=0.1)  # a look copies all objects
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
