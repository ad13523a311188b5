"""Reads answers of scoring APIs.

An answer may be anything, so its cost follows the limits and not its content: objects are counted
before they are decoded, decoding stops at the first error, and labels stay encoded until a rule
reads them.
"""

import re

import msgspec
from msgspec import Raw, Struct

from dsf.agent.failure import Failure
from dsf.agent.wire.foreign_text import (
    MALFORMED,
    CallSecrets,
    decode_labels,
    describe,
    encoded_size,
)
from dsf.agent.wire.http_answer import HttpAnswer, display_url, invalid_response, status_failure
from dsf.api.json_input import json_text, object_count
from dsf.api.untrusted_text import UntrustedName, quoted
from dsf.kube.redaction import NO_SPELLINGS, Spellings

_SHOWN_CHARACTERS = 32
"""Characters that a message quotes of a wrong score."""

NUMBER_BYTES = 1024
"""One number: the longest double has fewer than 800 significant digits."""

RESULT_BYTES = 1024
"""Memory of one decoded result until it is published, besides the answer's own bytes."""

_NUMBER_TEXT = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
_STRING_OR_NOT_FINITE = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|-?(?:NaN|Infinity)', re.DOTALL)


class ScoringResult(Struct, frozen=True, gc=False):
    """One result of a scoring call; `score` is in the scorer's own units.

    The labels are decoded at each access.
    """

    labels: Raw
    score: float

    @property
    def metric(self) -> dict[str, str]:
        """The labels."""
        return decode_labels(self.labels, NO_SPELLINGS)  # checked when the answer was read


class _EncodedResult(Struct, gc=False):
    score: Raw
    metric: Raw = Raw(b"{}")


class _EncodedAnswer(Struct):
    results: list[_EncodedResult]


_ANSWER = msgspec.json.Decoder(_EncodedAnswer)
_TEXT = msgspec.json.Decoder(str)


def parse_scoring_answer(
    url: str, answer: HttpAnswer, max_results: int
) -> list[ScoringResult] | Failure:
    """Return the results in an answer of `url`; a failure names the place of the first error.

    A score is a JSON number, or text with a number as Prometheus writes it ("1.5", "NaN", "+Inf").
    The literals NaN and Infinity, which are not JSON, are accepted because several libraries
    write them.
    """
    if not answer.ok:
        return status_failure("scoring", url, answer)
    # Counted before they are decoded: a result is an object, and its labels are another.
    if object_count(answer.body) > 2 * max_results + 1:
        return _too_many(url, max_results)
    try:
        results = _decoded(answer, max_results)
    except MALFORMED as error:
        return _misfit(url, answer, error)
    return _too_many(url, max_results) if len(results) > max_results else results


def _misfit(url: str, answer: HttpAnswer, error: Exception) -> Failure:
    why = describe(error)
    return invalid_response("scoring", url, answer, "a scoring response", why)


def _decoded(answer: HttpAnswer, max_results: int) -> list[ScoringResult]:
    body, secrets = json_text(answer.body), answer.secrets
    spelled = secrets.spelled_in(body)
    try:
        encoded = _ANSWER.decode(body).results
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"NaN" not in body and b"Infinity" not in body:
            raise
        encoded = _ANSWER.decode(_quoted(body, max_results)).results
    encoded.reverse()
    count, results = len(encoded), list[ScoringResult]()
    while encoded:  # frees each encoded result as soon as it is decoded
        results.append(_result(count - len(encoded), encoded.pop(), spelled, secrets))
    return results


def _result(
    index: int, encoded: _EncodedResult, spelled: Spellings, secrets: CallSecrets
) -> ScoringResult:
    try:
        decode_labels(encoded.metric, spelled)
        return ScoringResult(encoded.metric, _number(encoded.score, secrets))
    except MALFORMED as error:
        raise msgspec.ValidationError(f"results[{index}]: {error}") from error


def _number(encoded: Raw, secrets: CallSecrets) -> float:
    """Return a number of JSON or Prometheus; one too large for a double is infinite."""
    if encoded_size(encoded) > NUMBER_BYTES:
        raise msgspec.ValidationError(f"score: more than {NUMBER_BYTES} bytes")
    raw = bytes(encoded)
    if raw[:1] in b"-0123456789":
        return float(raw)
    text = _TEXT.decode(raw) if raw[:1] == b'"' else ""
    if not _NUMBER_TEXT.fullmatch(text):
        shown = secrets.line(text or raw)[:_SHOWN_CHARACTERS]
        named = quoted(shown) if text else UntrustedName(shown)
        got = f", got {named}" if shown or not secrets.withheld else ""
        raise msgspec.ValidationError(f"score: expected a number{got}")
    return float(text)


def _quoted(body: bytes | bytearray, max_results: int) -> bytes:
    """Return JSON with NaN and Infinity as text; at most one for each result."""
    pieces, end = list[bytes](), 0
    for found in _STRING_OR_NOT_FINITE.finditer(body):
        if found[0][:1] == b'"':
            continue
        if len(pieces) > 2 * max_results:
            raise msgspec.ValidationError(f"more than {max_results} scores that are not finite")
        pieces += (bytes(body[end : found.start()]), b'"%b"' % found[0])
        end = found.end()
    return b"".join([*pieces, bytes(body[end:])])


def _too_many(url: str, max_results: int) -> Failure:
    message = f"the answer of {display_url(url)} has more than {max_results} results: return fewer"
    return Failure("scoring", "ResponseTooLarge", message)
