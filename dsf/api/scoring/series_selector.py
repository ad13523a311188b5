"""The query of a scorer with source type OpenTelemetry: a selector of received series.

    http.server.request.duration_bucket{service.name="shop",http.route=~"/api/.*"}

`;` joins several selectors. The matchers are those of Prometheus: `=`, `!=`, `=~`, `!~`; regular
expressions match the whole value, and a missing attribute is empty. Names may be in the form of
OpenTelemetry or Prometheus: `service.name` and `service_name` are equal. Source:
https://prometheus.io/docs/prometheus/latest/querying/basics/#time-series-selectors
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from dsf.api.untrusted_text import InvalidInput

Operator = Literal["=", "!=", "=~", "!~"]

NAME = "__name__"
NAMES_REMEMBERED = 4096
"""Cached conversions of names; bounds the memory."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<word>[A-Za-z_:][\w:./-]*)
    | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    | (?P<sign>=~|!~|!=|[={},;])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_OPERATORS = {"=", "!=", "=~", "!~"}
_NOT_IN_METRIC = re.compile(r"[^A-Za-z0-9_:]")
_NOT_IN_LABEL = re.compile(r"[^A-Za-z0-9_]")


@lru_cache(NAMES_REMEMBERED)
def metric_name(name: str) -> str:
    """Return a metric's name as Prometheus writes it: `http.server.duration`, with `_` for `.`."""
    escaped = _NOT_IN_METRIC.sub("_", name)
    return f"_{escaped}" if escaped[:1].isdigit() else escaped


@lru_cache(NAMES_REMEMBERED)
def label_name(name: str) -> str:
    """Return an attribute's name as Prometheus writes it: `service.name`, with `_` for `.`."""
    escaped = _NOT_IN_LABEL.sub("_", name)
    return f"key_{escaped}" if escaped[:1].isdigit() else escaped


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a label; a regular expression has RE2 syntax and matches the whole value."""

    label: str
    operator: Operator
    value: str


@dataclass(frozen=True, slots=True)
class SeriesSelector:
    """Matchers that must all hold; the metric name is the label `__name__`."""

    matchers: tuple[Matcher, ...]


def parse(text: str) -> tuple[SeriesSelector, ...] | InvalidInput:
    """Parse a query; names in the selectors are in the form of Prometheus."""
    try:
        tokens = list(_tokens(text))
        selectors = [_selector(part) for part in _split(tokens, ";") if part]
    except _Unreadable as error:
        return InvalidInput("InvalidSelector", f'{error}; write name{{attribute="value"}}')
    if not selectors:
        return InvalidInput("InvalidSelector", 'the query is empty: write name{attribute="value"}')
    return tuple(selectors)


class _Unreadable(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise _Unreadable(f"nothing fits at character {at + 1} of the query")
        kind = str(match.lastgroup)
        value = match[kind]
        yield _Token(kind, _unquoted(value) if kind == "text" else value, match.start(kind))
        at = match.end()


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    if text.startswith("`"):
        return inner
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), inner)


def _split(tokens: list[_Token], sign: str) -> list[list[_Token]]:
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token.kind == "sign" and token.text == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _selector(tokens: list[_Token]) -> SeriesSelector:
    matchers = list[Matcher]()
    rest = list(tokens)
    if rest[0].kind == "word":
        matchers.append(Matcher(NAME, "=", metric_name(rest.pop(0).text)))
    if rest:
        matchers += _braces(rest)
    if not any(matcher.label == NAME for matcher in matchers):
        raise _Unreadable(f"the selector at character {tokens[0].at + 1} names no metric")
    return SeriesSelector(tuple(matchers))


def _braces(tokens: list[_Token]) -> list[Matcher]:
    first, last = tokens[0], tokens[-1]
    if first.text != "{" or first.kind != "sign":
        raise _Unreadable(f"a {{ is missing at character {first.at + 1} of the query")
    if last.text != "}" or last.kind != "sign":
        raise _Unreadable(f"the {{ at character {first.at + 1} of the query is not closed")
    return [_matcher(part) for part in _split(tokens[1:-1], ",") if part]


def _matcher(tokens: list[_Token]) -> Matcher:
    match [(token.kind, token.text) for token in tokens]:
        case [("text", name)]:
            return Matcher(NAME, "=", metric_name(name))
        case [("word" | "text", label), ("sign", operator), ("text", value)]:
            if operator in _OPERATORS:
                return _condition(label, cast("Operator", operator), value)
    raise _Unreadable(f"no matcher at character {tokens[0].at + 1} of the query")


def _condition(label: str, operator: Operator, value: str) -> Matcher:
    if label == NAME:
        return Matcher(NAME, operator, metric_name(value) if operator in {"=", "!="} else value)
    return Matcher(label_name(label), operator, value)
