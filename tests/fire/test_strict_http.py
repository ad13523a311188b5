"""Random requests that a proxy and a server may read in two ways, to each server of the product."""

import asyncio
import os
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dsf.runtime.endpoints import serve_endpoints
from tests.dsf.runtime.test_endpoints import ready, whole_response

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
    fields("X-A: no host"),
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
@given(request_=REQUESTS)
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
