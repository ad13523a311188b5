"""What is wrong with a server that answers, but not in valid HTTP or not over TLS."""

import ssl
from collections.abc import Iterator

import httpx

_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}

_SILENT = ("Server disconnected", "peer closed connection")


def broken_http(error: BaseException) -> tuple[str, str] | None:
    """Return a reason and a sentence without subject, in our own words; None for other errors.

    The subject of the sentence is the server. h11 and OpenSSL name the faults in their messages.
    """
    for cause in causes(error):
        if isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS:
            return "NotTLS", "does not speak TLS on that port: use http, or the port for https"
    text = str(error)
    if not isinstance(error, httpx.RemoteProtocolError) or text.startswith(_SILENT):
        return None
    if text.startswith("illegal request line"):  # h11: the first byte is a control character
        return "NotHTTP", "answers in binary, not in HTTP: does that port need https?"
    if text.startswith("illegal status line"):
        return "NotHTTP", "does not answer in HTTP: is the port right?"
    if "Content-Length" in text:
        return "InvalidHTTP", "sends contradictory or malformed Content-Length headers"
    return "InvalidHTTP", "sends a malformed HTTP answer: a header or a chunk is invalid"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, outermost first; of a group, those of its first error."""
    while error:
        yield error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__
