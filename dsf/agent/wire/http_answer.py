"""HTTP answers of sources and scoring APIs, and the failures that bad ones mean."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from dsf.agent.failure import Failure, Stage
from dsf.agent.wire.foreign_text import NO_SECRETS, CallSecrets
from dsf.api.scoring.scoring_api import HEALTH_PATH
from dsf.api.untrusted_text import UntrustedName, plain

UNAUTHORIZED = "Unauthorized"

_URL = re.compile(r"[!#-\[\]-~]*")
"""Printable ASCII without spaces, quotes and backslashes: what a URL consists of."""

_MEDIA_TYPES = {
    *("application/json", "application/problem+json", "application/octet-stream"),
    *("application/xml", "text/html", "text/plain", "text/xml"),
}
"""Those that servers usually have: named even if a server's words are not repeated."""

_OK = range(200, 300)
_REDIRECT = range(300, 400)
_SERVER_ERROR = range(500, 600)

_NO_ACCESS = (UNAUTHORIZED, "check the scorer's auth, and what its Secret has")
_MEANINGS = {
    304: ("NotModified", "the request set no condition: look at caches in front of that server"),
    401: _NO_ACCESS,
    403: _NO_ACCESS,
    404: ("NotFound", "check the endpoint's path"),
    429: ("TooManyRequests", "raise the scorer's interval or the server's limit"),
}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer with its complete body; `retry_after` is in seconds, None if not sent.

    `secrets` are those of the call, which messages about the answer must not repeat.
    """

    status: int
    content_type: str
    body: bytes | bytearray
    retry_after: float | None = None
    secrets: CallSecrets = NO_SECRETS

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return self.status in _OK


def display_url(url: str) -> str:
    """Return a URL for messages: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(not a URL)"
    host = f"[{host}]" if ":" in host else host
    shown = NO_SECRETS.excerpt(urlunsplit((parts.scheme, f"{host}{port}", parts.path, "", "")))
    return plain(shown) if _URL.fullmatch(shown) else str(shown)


def health_url(url: str) -> str:
    """Return the health endpoint of the server of a URL; the URL itself if it has no server."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc, HEALTH_PATH, "", ""))
    except ValueError:
        return url


def is_http_url(url: str) -> bool:
    """Tell whether a URL has the scheme http or https and a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def status_failure(stage: Stage, url: str, answer: HttpAnswer) -> Failure:
    """Return the failure for an answer whose status is not 2xx."""
    reason, advice = status_meaning(answer.status)
    kind = _media_type(answer)
    what = f"{display_url(url)} answered {answer.status}" + (f" ({kind})" if kind else "")
    message = f"{what}{answer.secrets.said(answer.body)}; {advice}"
    return Failure(stage, reason, message, answer.retry_after)


def invalid_response(stage: Stage, url: str, answer: HttpAnswer, form: str, why: str) -> Failure:
    """Return the failure for a 2xx answer whose body is not `form` (a noun phrase)."""
    shown = UntrustedName(answer.secrets.line(answer.content_type)) or _media_type(answer)
    kind = shown or f"{'another' if answer.content_type else 'no'} content type"
    where = display_url(url)
    message = f"{where} answered {answer.status} ({kind}), but not {form}: {why}"
    return Failure(stage, "InvalidResponse", message)


def _media_type(answer: HttpAnswer) -> UntrustedName:
    kind = answer.content_type.partition(";")[0].strip()
    return answer.secrets.word(kind, _MEDIA_TYPES)


def status_meaning(status: int) -> tuple[str, str]:
    """Return the reason for a status other than 2xx, and what to do about it."""
    if status in _MEANINGS:
        return _MEANINGS[status]
    if status in _REDIRECT:
        return "Redirected", "redirects are not followed: set the endpoint to the final URL"
    if status in _SERVER_ERROR:
        return "ServerError", "look at that server's log"
    return "UnexpectedStatus", "a status of 2xx was expected"
