# SPDX-License-Identifier: Apache-2.0
"""Connections whose clients send nothing, or in two ways, end; others stay."""

import socket
from collections.abc import Iterator

import pytest

from .application import bare_app
from .connections import TimedConnection
from .testing import served
from .wire import ScoringRequest

HEAD = b"POST /scoring HTTP/1.1\r\nHost: x\r\n"


class Impatient(TimedConnection):
    """Waits a moment only, so that the test need not."""

    arrival_seconds = 0.05


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    app = bare_app("slow")

    @app.post("/scoring")
    def scoring(_request: ScoringRequest) -> None: ...

    with served(app, Impatient) as url:
        yield "127.0.0.1", int(url.rpartition(":")[2])


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{"],
    ids=["none", "line", "head", "body"],
)
def test_a_request_that_does_not_arrive_ends_its_connection(
    address: tuple[str, int], sent: bytes
) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(sent)
        try:
            assert connection.recv(100) == b""
        except ConnectionResetError:
            pass


def test_a_complete_request_is_answered_and_the_connection_stays(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        for _ in range(2):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"X-Folded: a\r\n b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"POST /scoring HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ids=["two lengths", "folded", "host", "chunks of HTTP/1.0"],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(
    address: tuple[str, int], sent: bytes
) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(sent)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
