"""Random requests that a proxy and a server may read in two ways, to each server of the product."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import serving
from dsf.runtime.endpoints import serve_endpoints
from tests.dsf.runtime.test_endpoints import ready, whole_response
from tests.repository import ROOT

EXAMPLES = int(os.environ.get("FIRE_EXAMPLES", "100"))
NAMES = ("X-A", "Accept", "User-Agent", "Cookie")


def cased(text: str) -> st.SearchStrategy[str]:
    """A text in any case."""
    return st.tuples(*(st.sampled_from((c.lower(), c.upper())) for c in text)).map("".join)


def fields(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[list[str]]:
    """Lines of a head, from parts of each line."""
    lines = (part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts)
    return st.tuples(*lines).map(list)


HOST = "Host: localhost"
FOREIGN = st.sampled_from('@/\\?#[]"<>^`{|} ')
AMBIGUOUS = st.one_of(
    st.tuples(
        st.just(HOST),
        cased("content-length").map("{}: 5".format),
        st.tuples(cased("transfer-encoding"), cased("chunked")).map(": ".join),
    ).flatmap(st.permutations),
    st.tuples(st.sampled_from(NAMES), st.sampled_from((" ", "\t", " \t"))).map(
        lambda drawn: [HOST, f"{drawn[0]}: b\r\n{drawn[1]}c"]
    ),
    st.tuples(FOREIGN, st.integers(1, 8)).map(
        lambda drawn: [f"Host: {'localhost'[: drawn[1]]}{drawn[0]}evil.com"]
    ),
    fields(HOST, st.sampled_from(("Host: localhost", "Host: evil.com", "host: LOCALHOST"))),
    fields(st.sampled_from(("X-A: no host", "Host:", "Host: :80", "Host: [:::::]"))),
    fields(HOST, "Content-Length: 5", "Content-Length: 6"),
    fields(
        HOST,
        st.sampled_from(("+5", "0x5", "5 5", "-1", "5,6", "५")).map("Content-Length: {}".format),
    ),
    fields(HOST, st.sampled_from(NAMES).map("{} : b".format)),
    fields(HOST, st.sampled_from(NAMES).map("{}: b\x00c".format)),
    fields(
        HOST,
        st.sampled_from(("xchunked", "chunked, gzip", "identity, chunked")).map(
            "Transfer-Encoding: {}".format
        ),
    ),
)
REQUESTS = st.tuples(st.sampled_from(("GET", "POST", "HEAD")), AMBIGUOUS).map(
    lambda drawn: f"{drawn[0]} /healthz HTTP/1.1\r\n" + "\r\n".join(drawn[1]) + "\r\n\r\n0\r\n\r\n"
)


CHUNKED = st.sampled_from(
    (
        "1 \r\nX\r\n0\r\n\r\n",
        "1\t;a\r\nX\r\n0\r\n\r\n",
        "1\r\nX\r\n0 \r\n\r\n",
        "0\r\nX-A: b\r\n c\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n",
        "+1\r\nX\r\n0\r\n\r\n",
        "0x1\r\nX\r\n0\r\n\r\n",
    )
).map(lambda body: f"POST /healthz HTTP/1.1\r\n{HOST}\r\nTransfer-Encoding: chunked\r\n\r\n{body}")


def refused(answer: bytes) -> bool:
    """Return whether a server has refused one request, and closed the connection."""
    status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/1.") else b""
    return status in (b"400", b"501") and answer.count(b"HTTP/1.") == 1


@pytest.mark.exhaustive
@pytest.mark.fire(
    "a request that may be read in two ways is refused, and its connection closes",
    "random heads to the optimizer, over sockets",
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(request_=st.one_of(REQUESTS, REQUESTS, CHUNKED))
def test_the_optimizer_refuses_it(optimizer_url: str, request_: str) -> None:
    sent = request_.encode() * 2
    address = urlsplit(optimizer_url).netloc
    answer = asyncio.run(whole_response(f"http://{address}", sent))
    assert refused(answer), (request_, answer)


@pytest.mark.exhaustive
@pytest.mark.fire(
    "a request that may be read in two ways is refused, and its connection closes",
    "random heads to the endpoints of controller, agent and policy watcher, over sockets",
)
@settings(max_examples=EXAMPLES, deadline=None)
@given(request_=REQUESTS)
def test_the_endpoints_refuse_it(request_: str) -> None:
    async def asked() -> bytes:
        registry = CollectorRegistry()
        async with serve_endpoints("127.0.0.1:0", registry=registry, ready=ready) as url:
            return await whole_response(url, request_.encode() * 2)

    answer = asyncio.run(asked())
    assert refused(answer), (request_, answer)


@pytest.mark.exhaustive
@pytest.mark.fire(
    "a request that may be read in two ways is refused, and its connection closes",
    "random heads to the embedded API server, over sockets",
)
@settings(max_examples=EXAMPLES, deadline=None)
@given(request_=st.one_of(REQUESTS, REQUESTS, CHUNKED))
def test_the_embedded_api_server_refuses_it(request_: str) -> None:
    async def asked() -> bytes:
        async with serving(EmbeddedHub()) as url:
            return await whole_response(url, request_.encode() * 2)

    answer = asyncio.run(asked())
    assert refused(answer), (request_, answer)


@pytest.fixture(scope="module")
def sample_url() -> Iterator[str]:
    """URL of a sample scorer, started as its README says."""
    command = [sys.executable, "-m", "sample_scorers.sample", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        yield process.stdout.readline().split("listens on ")[1].split(" ")[0]
        process.terminate()


@pytest.mark.exhaustive
@pytest.mark.fire(
    "a request that may be read in two ways is refused, and its connection closes",
    "random heads to a sample scorer, over sockets",
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(request_=REQUESTS)
def test_a_sample_scorer_refuses_it(sample_url: str, request_: str) -> None:
    answer = asyncio.run(whole_response(sample_url, request_.encode() * 2))
    assert refused(answer), (request_, answer)


@pytest.mark.parametrize("pieces", [1, 7, 1000])
async def test_a_body_in_chunks_is_read_whatever_the_packets(pieces: int) -> None:
    """So the tests above refuse no other request; a second one that was sent ahead is answered."""
    body = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    chunks = "".join(f"{len(part):X};x=y\r\n{part}\r\n" for part in (body[:5], body[5:]))
    sent = (
        f"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n{HOST}\r\n"
        f"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n{chunks}0\r\n\r\n"
        f"GET /healthz HTTP/1.1\r\n{HOST}\r\nConnection: close\r\n\r\n"
    ).encode()
    async with serving(EmbeddedHub()) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        for start in range(0, len(sent), -(-len(sent) // pieces)):
            writer.write(sent[start : start + -(-len(sent) // pieces)])
            await writer.drain()
            await asyncio.sleep(0)
        answer = await reader.read()
        writer.close()
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"201", b"200"]
