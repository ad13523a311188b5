"""Probing over real sockets: every fault of an API becomes a reason."""

import asyncio
import contextlib
import gzip
import json
import socket
from typing import Any

import pytest

from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.observe.prober import ProbeLimits, Prober
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult, ProbeTarget
from dsf.kube.redaction import redact
from tests.dsf.hub.builders import api_config
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api

GOOD = ScorerConfig.model_validate(api_config())


async def probed(url: str, *, full: bool = True, limits: ProbeLimits | None = None) -> ProbeResult:
    return await Prober(limits).probe(ProbeTarget(url, full=full))


async def test_a_good_api() -> None:
    async with scoring_api() as api:
        assert await probed(api.config_url) == ProbeResult(None, GOOD)
        assert sorted(api.asked) == ["/base/config", "/healthz"]


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "503 Service Unavailable"])
async def test_an_answer_is_read_to_its_end_so_that_closing_resets_nothing(status: str) -> None:
    ends: list[bytes | ConnectionResetError] = []
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert b"connection: close\r\n" in request.lower()
        body = b"x" * 200_000
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            ends.append(await reader.read())
        except ConnectionResetError as error:
            ends.append(error)
        ended.set()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/config"
        result = await probed(url, full=False)
        await ended.wait()
    assert ends == [b""]
    assert (result.health is None) == status.startswith("200")


async def test_mode_none_only_asks_for_health() -> None:
    async with scoring_api() as api:
        assert await probed(api.config_url, full=False) == ProbeResult(None, None)
        assert api.asked == ["/healthz"]


async def test_a_sick_api_with_a_good_config() -> None:
    async with scoring_api(ScoringAPI(health=503)) as api:
        answer = await probed(api.config_url)
    assert answer.config == GOOD
    assert answer.health == ProbeFailure(
        "BadStatus", f"GET {api.url}/healthz: answered 503 instead of 200"
    )


def _with_interval(text: str) -> bytes:
    return json.dumps(api_config()).replace('"interval": 30', f'"interval": {text}').encode()


def _declaring(**meaning: Any) -> ScoringAPI:
    return ScoringAPI(body=json.dumps({**api_config(), **meaning}).encode())


REPLIES = {
    "not JSON": (ScoringAPI(body=b"<html>"), "NotJSON"),
    "not UTF-8": (ScoringAPI(body=b'{"name": "\xff"}'), "NotJSON"),
    "nothing": (ScoringAPI(body=b""), "NotJSON"),
    "half a surrogate": (ScoringAPI(body=b'{"name": "\\ud800"}'), "NotJSON"),
    "deep nesting": (ScoringAPI(body=b"[" * 100_000), "NotJSON"),
    "a list": (ScoringAPI(body=b"[]"), "InvalidConfig"),
    "no scoring": (ScoringAPI(body=b'{"name": "x", "source": {}}'), "InvalidConfig"),
    "too large": (ScoringAPI(body=b" " * 10_000_000), "TooLarge"),
    "an error": (ScoringAPI(status=500), "BadStatus"),
    "a redirect": (ScoringAPI(status=302, headers={"Location": "/healthz"}), "Redirected"),
    "a loop": (ScoringAPI(status=307, headers={"Location": "/base/config"}), "Redirected"),
    "compression": (
        ScoringAPI(body=gzip.compress(b" " * 10_000), headers={"Content-Encoding": "gzip"}),
        "Compressed",
    ),
    "UTF-16": (ScoringAPI(body=json.dumps(api_config()).encode("utf-16")), "WrongEncoding"),
    "UTF-16 without a mark": (
        ScoringAPI(body=json.dumps(api_config()).encode("utf-16-le")),
        "WrongEncoding",
    ),
    "a number beyond all bounds": (ScoringAPI(body=_with_interval("1e999")), "InvalidConfig"),
    "a number of 5,000 digits": (ScoringAPI(body=_with_interval("9" * 5000)), "NotJSON"),
    "not a number": (ScoringAPI(body=_with_interval("NaN")), "InvalidConfig"),
    "a fraction": (ScoringAPI(body=_with_interval("0.5")), "InvalidConfig"),
    "null": (ScoringAPI(body=b"null"), "InvalidConfig"),
    "a range that is none": (_declaring(range={"min": 1, "max": 0}), "InvalidConfig"),
    "a range without ends": (_declaring(range={}), "InvalidConfig"),
    "an unknown direction": (_declaring(direction="Up"), "InvalidConfig"),
    "a unit that is too long": (_declaring(unit="x" * 33), "InvalidConfig"),
    "a unit that colours a terminal": (_declaring(unit="W\x1b[31m"), "InvalidConfig"),
    "a display name of two lines": (_declaring(displayName="a\nb"), "InvalidConfig"),
    "a string": (ScoringAPI(body=b'"config"'), "InvalidConfig"),
    "two documents": (ScoringAPI(body=b"{}{}"), "NotJSON"),
    "zeros": (ScoringAPI(body=b"\0" * 1000), "NotJSON"),
    "deep nesting in a field": (
        ScoringAPI(body=b'{"name":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001),
        "NotJSON",
    ),
    "a hundred thousand fields": (
        ScoringAPI(body=json.dumps({f"f{n}": n for n in range(20_000)}).encode()[:250_000]),
        "NotJSON",
    ),
    "a deflate bomb": (
        ScoringAPI(body=b"x", headers={"Content-Encoding": "deflate"}),
        "Compressed",
    ),
    "teapot": (ScoringAPI(status=418), "BadStatus"),
    "nothing to see": (ScoringAPI(status=204, body=b""), "NotJSON"),
    "a wrong type": (
        ScoringAPI(
            body=json.dumps(
                {**api_config(), "scoring": {"params": {"name": "x", "interval": -1}}}
            ).encode()
        ),
        "InvalidConfig",
    ),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.fire("a hostile server is a failure with a reason", "replies to the hub's probe")
async def test_bad_replies(reply: str) -> None:
    behaviour, reason = REPLIES[reply]
    async with scoring_api(behaviour) as api:
        answer = await probed(api.config_url)
    assert answer.health is None
    assert isinstance(answer.config, ProbeFailure)
    assert answer.config.reason == reason
    assert answer.config.message.startswith(f"GET {api.url}/base/config")
    assert len(answer.config.message) < 1000
    if reason == "NotJSON":
        assert "serve an object with name, source and scoring there" in answer.config.message
        assert "or correct spec.configURL" in answer.config.message


async def test_a_config_that_has_not_changed_is_not_sent_again() -> None:
    async with scoring_api(ScoringAPI(etag='"1"')) as api:
        prober, target = Prober(), ProbeTarget(api.config_url, full=True)
        for _ in range(3):
            assert await prober.probe(target) == ProbeResult(None, GOOD)
        assert len(api.sent) == 1
        api.etag, api.body = '"2"', json.dumps(api_config("other")).encode()
        answer = await prober.probe(target)
        assert isinstance(answer.config, ScorerConfig)
        assert answer.config.scoring.params.name == "other"
        assert len(api.sent) == 2


async def test_a_bad_config_is_read_again_whatever_its_tag() -> None:
    async with scoring_api(ScoringAPI(etag='"1"', body=b"<html>")) as api:
        prober, target = Prober(), ProbeTarget(api.config_url, full=True)
        for _ in range(2):
            config = (await prober.probe(target)).config
            assert isinstance(config, ProbeFailure)
            assert config.reason == "NotJSON"
        api.body = json.dumps(api_config()).encode()
        assert await prober.probe(target) == ProbeResult(None, GOOD)


async def test_nothing_new_for_one_who_knows_nothing() -> None:
    async with scoring_api(ScoringAPI(status=304, body=b"")) as api:
        answer = await probed(api.config_url)
    assert isinstance(answer.config, ProbeFailure)
    assert answer.config.reason == "BadStatus"


async def test_a_tag_that_no_header_may_hold_is_not_sent_back() -> None:
    async with scoring_api(ScoringAPI(etag='"' + "x" * 1000 + '"')) as api:
        prober, target = Prober(), ProbeTarget(api.config_url, full=True)
        for _ in range(2):
            assert await prober.probe(target) == ProbeResult(None, GOOD)
        assert len(api.sent) == 2


async def test_one_deadline_for_a_slow_drip() -> None:
    # Every byte comes well before the deadline, the last one far behind it.
    slow = ScoringAPI(drip_seconds=0.02, body=b" " * 1_000_000)
    async with scoring_api(slow) as api:
        answer = await probed(api.config_url, limits=ProbeLimits(seconds=1.0))
    assert isinstance(answer.config, ProbeFailure)
    assert answer.config.reason == "TimedOut"
    assert "1 s" in answer.config.message


async def test_nobody_there() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/config"
        answer = await probed(url)
    assert isinstance(answer.health, ProbeFailure)
    assert isinstance(answer.config, ProbeFailure)
    assert (answer.health.reason, answer.config.reason) == ("Unreachable", "Unreachable")


LENGTHS = b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}a"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
RAW = {
    "a header without end": (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 1_000_000, "InvalidHTTP"),
    "a million headers": (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200_000, "InvalidHTTP"),
    "more promised than sent": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "Unreachable"),
    "a negative length": (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "InvalidHTTP"),
    "two lengths": (b"HTTP/1.1 200 OK\r\n" + LENGTHS, "InvalidHTTP"),
    "a broken chunk": (CHUNKED + b"zz\r\n{}", "InvalidHTTP"),
    "a huge chunk": (CHUNKED + b"fffffffff\r\n{}", "Unreachable"),
    "status 99": (b"HTTP/1.1 99 What\r\n\r\n{}", "NotHTTP"),
    "continue for ever": (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "Unreachable"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "NotHTTP"),
}


@pytest.mark.parametrize("raw", RAW)
@pytest.mark.fire("a hostile server is a failure with a reason", "replies to the hub's probe")
async def test_raw_replies(raw: str) -> None:
    sent, reason = RAW[raw]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        config = (await probed(f"http://127.0.0.1:{port}/config")).config
    assert isinstance(config, ProbeFailure)
    assert config.reason == reason
    assert len(config.message) < 500


@pytest.mark.parametrize(
    "url", [f"http://{'a' * 70}.example/config", "http://[::1%25x]/config", "http://a..b/config"]
)
async def test_names_that_cannot_be_looked_up(url: str) -> None:
    answer = await probed(url)
    assert isinstance(answer.config, ProbeFailure)
    assert answer.config.reason in {"Unreachable", "InvalidURL"}


async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scoring_api() as proxy, scoring_api() as api:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert (await probed(api.config_url)).config == GOOD
        assert proxy.asked == []


REFUSED = {
    "an error": b"HTTP/1.1 503 x\r\nContent-Length: 5\r\n\r\nsorry",
    "a redirect": b"HTTP/1.1 302 x\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    "compression": b"HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n",
    "too much": b"HTTP/1.1 200 x\r\nContent-Length: 9999999\r\n\r\n" + b" " * 300_000,
    "too slow": b"HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n",
    "not HTTP": b"hello\r\n\r\n",
    "a good answer": b"HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("reply", REFUSED)
async def test_no_connection_stays_open_after_a_probe(reply: str) -> None:
    closed = asyncio.Queue[bool]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REFUSED[reply])
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass
        closed.put_nowait(True)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        prober = Prober(ProbeLimits(seconds=1.0))
        await prober.probe(ProbeTarget(f"http://127.0.0.1:{port}/config", full=True))
        async with asyncio.timeout(5):
            assert [await closed.get() for _ in ("health", "config")] == [True, True]


TOKENS = ("Bearer canary+0af3/Zz91==", "eyJjYW5hcnk.eyJjYW5hcnk-0af3.canary_signature")
ECHOES = {
    "location": lambda t: ScoringAPI(status=302, headers={"Location": f"/login?got={t}"}),
    "encoding": lambda t: ScoringAPI(headers={"Content-Encoding": t}),
    "error": lambda t: ScoringAPI(status=401, body=t.encode(), headers={"Content-Type": t}),
    "text": lambda t: ScoringAPI(body=t.encode()),
    "source type": lambda t: ScoringAPI(
        body=json.dumps(api_config() | {"source": {"type": t}}).encode()
    ),
    "unknown field": lambda t: ScoringAPI(body=json.dumps(api_config() | {t: 1}).encode()),
    "unknown field of a bad config": lambda t: ScoringAPI(body=json.dumps({t: t}).encode()),
    "a field of another type": lambda t: ScoringAPI(
        body=json.dumps(api_config() | {"scoring": t, "name": [t]}).encode()
    ),
}


def test_what_is_wrong_with_a_url_is_not_taken_for_a_password() -> None:
    wrong = urls.server("http://user:canary@scorer", "spec.configURL")
    assert isinstance(wrong, InvalidInput)
    assert redact(wrong.message) == wrong.message
    assert "canary" not in wrong.message


async def test_a_byte_order_mark_is_ignored() -> None:
    body = b"\xef\xbb\xbf" + json.dumps(api_config()).encode()
    async with scoring_api(ScoringAPI(body=body)) as api:
        answer = await probed(api.config_url)
    assert answer.config == GOOD


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("echo", ECHOES)
async def test_no_token_of_an_answer_is_in_a_message(echo: str, token: str) -> None:
    """The hub sends no token, but an API may repeat those that agents sent it."""
    async with scoring_api(ECHOES[echo](token)) as api:
        answer = await probed(api.config_url)
    assert "canary" not in f"{answer.health} {answer.unknown}"
    if isinstance(answer.config, ProbeFailure):
        assert token.removeprefix("Bearer ")[:12] not in answer.config.message
