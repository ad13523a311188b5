"""Calls of Prometheus' query API for the queries of a scorer.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from dsf.agent.wire.prometheus_answer import ANY_SAMPLES, AskedSamples
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH, DEFAULT_STEP_SECONDS

GET_LIMIT = 2000
"""Characters of parameters in a URL; longer ones are sent by POST, as proxies limit URLs."""

_RANGE = "/query_range"
_INSTANT = "/query"
_TOKEN = re.compile(
    r"""
      "(?:\\.|[^"\\])*"?      # text in double quotes
    | '(?:\\.|[^'\\])*'?      # text in single quotes
    | `[^`]*`?                # raw text
    | \#[^\n]*                # a comment
    | [{};]
    | [^"'`\#{};]+
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """One call of the query API: GET with parameters in the URL, or POST with a form."""

    url: str
    parameters: tuple[tuple[str, str], ...]
    asked: AskedSamples = ANY_SAMPLES

    @property
    def method(self) -> str:
        """GET, or POST if the parameters are too long for a URL."""
        return "POST" if len(self.encoded) > GET_LIMIT else "GET"

    @property
    def encoded(self) -> str:
        """The parameters, form-encoded."""
        return urlencode(self.parameters)


def split_queries(text: str) -> tuple[str, ...]:
    """Split queries joined by `;`; a `;` in quotes, braces or a comment does not separate."""
    queries, depth = [""], 0
    for piece in _TOKEN.findall(text):
        if piece == ";" and depth == 0:
            queries.append("")
            continue
        depth = max(0, depth + {"{": 1, "}": -1}.get(piece, 0))
        queries[-1] += piece
    return tuple(query.strip() for query in queries if query.strip())


def on_server(endpoint: str, server: str) -> str:
    """Return the endpoint's path and parameters on another server, the endpoint if it is empty.

    `server` is a URL; its path becomes a prefix, as with a proxy. Raises ValueError if the endpoint
    is not a URL.
    """
    if not server:
        return endpoint
    parts = urlsplit(endpoint)
    path = server.rstrip("/") + (parts.path or DEFAULT_SOURCE_PATH)
    return f"{path}?{parts.query}" if parts.query else path


def build_query(
    endpoint: str, query: str, *, range_: int, step: int, now: float
) -> PrometheusQuery:
    """Return the call for one query over the last `range_` seconds until `now` (unix seconds).

    If the range is 0 or the endpoint ends in `/query`, the call asks for the instant value. The
    endpoint's own parameters are kept. Raises ValueError if the endpoint is not a URL.
    """
    parts = urlsplit(endpoint)
    path = DEFAULT_SOURCE_PATH if parts.path in {"", "/"} else parts.path
    if range_ <= 0 and path.endswith(_RANGE):
        path = path.removesuffix(_RANGE) + _INSTANT
    instant = range_ <= 0 or path.endswith(_INSTANT)
    when = (("time", f"{now:.3f}"),) if instant else _window(range_, step, now)
    return PrometheusQuery(
        url=urlunsplit((parts.scheme, parts.netloc, path, "", "")),
        parameters=(*parse_qsl(parts.query, keep_blank_values=True), ("query", query), *when),
        asked=AskedSamples(now, ranged=not instant),
    )


def _window(range_: int, step: int, now: float) -> tuple[tuple[str, str], ...]:
    return (
        ("start", f"{now - range_:.3f}"),
        ("end", f"{now:.3f}"),
        ("step", str(step if step > 0 else DEFAULT_STEP_SECONDS)),
    )
