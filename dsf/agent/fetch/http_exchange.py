"""One HTTP exchange with an untrusted server, bounded in time and size, and its decoding."""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVar

import httpx

from dsf.agent.failure import Failure, Stage
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.bounded_body import TooLarge, UnusableBody, read_body
from dsf.agent.fetch.http_client import HttpClient, UnusableCertificate
from dsf.agent.wire.http_answer import HttpAnswer, display_url, is_http_url
from dsf.agent.wire.scoring_request import ScoringRequestBody
from dsf.agent.wire.secret_data import ClientCertificate
from dsf.api.times import retry_after
from dsf.outbound.pinned_connections import DestinationDenied, broken_http, causes

FORM = {"Content-Type": "application/x-www-form-urlencoded"}

_REDIRECTS = range(300, 400)
_CERTIFICATE_ALERT = re.compile("_ALERT_(.*CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)")
"""OpenSSL's names of TLS alerts after a missing or unwanted client certificate.

A server that closes at once may end the connection before its alert arrives.
"""
_OTHER_CERTIFICATE = (
    "does it want another client certificate, or one at all? See auth.clientCertificateSecretRef"
)
_CONNECT_SHARE = 0.5
"""Share of a call's time to connect: it tells an address that drops packets from a slow server."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of each call: the scorer's interval clamped to these seconds, and these bytes.

    `max_bytes` limits the body after decompression.
    """

    min_seconds: float = 10.0
    max_seconds: float = 120.0
    max_bytes: int = 32 << 20

    def deadline(self, interval_seconds: float) -> float:
        """Return the seconds that one stage of a round may take."""
        return min(max(interval_seconds, self.min_seconds), self.max_seconds)


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request; `ca` has the PEM certificates to trust instead of public authorities.

    `certificate` is presented to a server that asks for one.
    """

    method: str
    url: str
    body: bytes | ScoringRequestBody = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    ca: str = ""
    certificate: ClientCertificate | None = None


@dataclass(frozen=True, slots=True)
class CallDeadline:
    """A moment of the event loop's clock by which a stage has to end, `seconds` after its start."""

    seconds: float
    at: float

    @classmethod
    def within(cls, seconds: float) -> Self:
        """Return the deadline that ends `seconds` from now."""
        return cls(seconds, asyncio.get_running_loop().time() + seconds)


async def exchange(
    client: HttpClient,
    request: OutboundRequest,
    *,
    stage: Stage,
    deadline: CallDeadline,
    max_bytes: int,
    reservation: AnswerReservation | None = None,
) -> HttpAnswer | Failure:
    """Send a request and return the complete answer, whatever its status.

    `reservation` reserves memory for the answer; None if no memory has to be reserved.
    """
    where = display_url(request.url)
    if not is_http_url(request.url):
        message = f"{where} is not an http or https URL: correct the scorer's endpoint"
        return Failure(stage, "InvalidURL", message)
    try:
        async with asyncio.timeout_at(deadline.at):
            return await _answer(client, request, deadline, max_bytes, reservation)
    except TimeoutError:
        return Failure(stage, *late(where, deadline, reservation))
    except UnusableBody as error:
        reason = "ResponseTooLarge" if isinstance(error, TooLarge) else "InvalidResponse"
        return Failure(stage, reason, f"the answer of {where} {error}")
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        message = f"{where} is not a usable URL: correct the scorer's endpoint"
        return Failure(stage, "InvalidURL", message)
    except (httpx.HTTPError, ssl.SSLError, UnusableCertificate, DestinationDenied) as error:
        return Failure(stage, *_broken(where, error))


def late(
    where: str, deadline: CallDeadline, reservation: AnswerReservation | None
) -> tuple[str, str]:
    """Return reason and message for an answer that was not complete in time."""
    if reservation is None or not reservation.waits:
        message = f"{where} did not answer completely within {deadline.seconds:g} s"
        return "DeadlineExceeded", f"{message}: look at that server's load and log"
    message = (
        f"the answer of {where} got no memory for {deadline.seconds:g} s: answers of other rounds"
        f" fill the {reservation.total >> 20} MiB that all share; ask for less, or raise"
        " --answers-in-flight (spokeSetting.agent.answersInFlight) and the agent's memory"
    )
    return "AgentBusy", message


async def _answer(
    client: HttpClient,
    request: OutboundRequest,
    deadline: CallDeadline,
    max_bytes: int,
    reservation: AnswerReservation | None,
) -> HttpAnswer:
    pool = client.pool(request.ca, request.certificate)
    client.secrets(request.url, request.headers)  # noted before another call gets an answer
    response = await pool.send(_message(pool, request, deadline), stream=True)
    try:
        redirect = response.status_code in _REDIRECTS
        body = bytearray() if redirect else await _body(response, max_bytes, reservation)
    finally:
        await response.aclose()
    kind = response.headers.get("content-type", "")
    secrets = client.secrets(request.url, request.headers)
    return HttpAnswer(response.status_code, kind, body, retry_after(response.headers), secrets)


def _message(
    pool: httpx.AsyncClient, request: OutboundRequest, deadline: CallDeadline
) -> httpx.Request:
    body, headers = request.body, dict(request.headers)
    # The addresses of a host share the time to connect; the deadline limits everything else.
    timeout = httpx.Timeout(None, connect=deadline.seconds * _CONNECT_SHARE)
    content: bytes | AsyncIterator[bytes] | None
    if isinstance(body, bytes):
        content = body or None
    else:
        content, headers["Content-Length"] = _pieces(body), str(len(body))
    return pool.build_request(
        request.method, request.url, content=content, headers=headers, timeout=timeout
    )


async def _pieces(body: ScoringRequestBody) -> AsyncIterator[bytes]:
    for piece in body:
        yield piece


async def _body(
    response: httpx.Response, max_bytes: int, reservation: AnswerReservation | None
) -> bytearray:
    """Read the raw body and inflate it here, because httpx inflates chunks without a limit."""
    encoding, size = response.headers.get("content-encoding", ""), 0
    try:
        room = reservation.read if reservation else None
        body = await read_body(response.aiter_raw(), encoding, max_bytes, room)
        size = len(body)
    finally:
        if reservation:
            reservation.keep(size)
    return body


def _broken(
    where: str, error: httpx.HTTPError | ssl.SSLError | UnusableCertificate | DestinationDenied
) -> tuple[str, str]:
    """Return reason and message for a call that got no answer."""
    if isinstance(error, DestinationDenied):
        advice = "name another host, or change the agent's --scorer-allowed-cidrs and such"
        return "Denied", f"{where}: {error}; {advice}"
    if isinstance(error, UnusableCertificate):
        message = f"the client certificate for {where} can't be used: does its key belong to it?"
        return "InvalidCertificate", f"{message} Correct the Secret of clientCertificateSecretRef"
    if isinstance(error, ssl.SSLError):
        message = f"the authority for {where} is not a PEM certificate: correct the Secret of"
        return "InvalidAuthority", f"{message} tls.caSecretRef"
    if untrusted := next(filter(None, (_refusal(where, cause) for cause in causes(error))), None):
        return untrusted
    if broken := broken_http(error):
        return broken[0], f"{where} {broken[1]}"
    ended = any(isinstance(cause, ConnectionError | ssl.SSLEOFError) for cause in causes(error))
    hint = f" Or {_OTHER_CERTIFICATE}" if ended and where.startswith("https:") else ""
    return "Unreachable", f"{where}: {_why(error)}{hint}"


def _refusal(where: str, cause: BaseException) -> tuple[str, str] | None:
    """Return reason and message if one side does not accept the other's certificate."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        message = f"the certificate of {where} is not trusted: {cause.verify_message}"
        return "CertificateNotTrusted", f"{message}; name its authority by tls.caSecretRef"
    if isinstance(cause, ssl.SSLError) and _CERTIFICATE_ALERT.search(cause.reason or ""):
        return "CertificateRefused", f"{where} ended the TLS handshake: {_OTHER_CERTIFICATE}"
    return None


def _why(error: httpx.HTTPError) -> str:
    """Return the operating system's words or our own, never foreign text."""
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time; is the address right, and does a firewall let it through?"
    system = [cause for cause in causes(error) if isinstance(cause, OSError) and cause.strerror]
    if system:
        return f"{_words(system[-1])}; is the address right, and the server up?"
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
        return "the connection broke before the answer was complete"
    return f"the call failed ({type(error).__name__})"


def _words(error: OSError) -> str:
    """Return the system's own words: asyncio formats a refused connection as a Python tuple."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return str(error.strerror)


INLINE_BYTES = 1 << 16
"""Larger data is processed in a thread: decoding it may delay other rounds by milliseconds."""

T = TypeVar("T")


async def decode_within(
    decode: Callable[[], T],
    *,
    memory: int,
    kept: Callable[[T], int],
    stage: Stage,
    url: str,
    deadline: CallDeadline,
    reservation: AnswerReservation | None,
) -> T | Failure:
    """Reserve `memory` bytes, decode, and keep the bytes that `kept` returns for the result."""
    if reservation is None:
        return await off_loop(decode, memory)
    size = 0
    try:
        async with asyncio.timeout_at(deadline.at):
            await reservation.read(memory)
        decoded = await off_loop(decode, memory)
        size = kept(decoded)
    except TimeoutError:
        return Failure(stage, *late(display_url(url), deadline, reservation))
    finally:
        reservation.keep(size)
    return decoded


async def off_loop(work: Callable[[], T], size: int) -> T:
    """Return the result of `work`, which runs in a thread if it has many bytes to process."""
    return work() if size <= INLINE_BYTES else await asyncio.to_thread(work)
