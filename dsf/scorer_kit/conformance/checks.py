"""The checks, in their order: what each promises, which calls it makes, and who judges them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.scorer_kit.conformance import judges
from dsf.scorer_kit.conformance.evidence import CheckCall, CheckInput, Evidence
from dsf.scorer_kit.conformance.judges import Findings
from dsf.scorer_kit.invented_series import TYPICAL_SERIES, invented

Need = Literal["nothing", "config", "endpoint", "answer", "results", "own series", "token"]
"""What a check needs: a usable config, the scoring endpoint, the answer to a typical request, the
results in it, results of series that nobody invented, or a token."""

_NOT_FINITE = ("NaN", "+Inf", "-Inf", "0.5")


@dataclass(frozen=True, slots=True)
class ConformanceCheck:
    """One check; it is made only if what it `needs` is there.

    `calls` returns its calls, None if it judges those before it. With `probes` it asks for the
    health.
    """

    name: str
    promise: str
    judge: Callable[[Evidence], Findings]
    calls: Callable[[CheckInput], Sequence[CheckCall]] | None = None
    needs: Need = "results"
    probes: bool = False


def _series(series: Sequence[EncodedSeries], given: CheckInput) -> CheckCall:
    return CheckCall(given.body(() if given.without_source else series))


def _typical(given: CheckInput) -> list[CheckCall]:
    return [_series(given.typical, given)]


def _few_samples(given: CheckInput) -> list[CheckCall]:
    return [
        _series(invented(given.forms, TYPICAL_SERIES, samples=number), given) for number in (1, 0)
    ]


def _not_finite(given: CheckInput) -> list[CheckCall]:
    mixed = invented(
        given.forms, TYPICAL_SERIES, lambda one, at: _NOT_FINITE[(one + at) % len(_NOT_FINITE)]
    )
    return [
        _series(mixed, given),
        _series(invented(given.forms, TYPICAL_SERIES, lambda _, __: "NaN"), given),
    ]


def _large(given: CheckInput) -> list[CheckCall]:
    size = given.settings
    of_each = max(1, size.series // len(given.forms))
    return [_series(invented(given.forms, of_each, samples=size.samples), given)]


def _other_content_type(given: CheckInput) -> list[CheckCall]:
    (valid,) = _typical(given)
    return [CheckCall(valid.body, "text/plain"), CheckCall(b"data=1", "text/plain")]


def _malformed(_: CheckInput) -> list[CheckCall]:
    return [CheckCall(body) for body in (b'{"data": [', b"", b'{"data": "\xff\xfe"}')]


def _wrong_shape(_: CheckInput) -> list[CheckCall]:
    bodies = (
        b"[]",
        b"{}",
        b'{"data": 5}',
        b'{"data": [{"metric": [], "values": "x"}]}',
        b'{"data": [{"metric": {"pod": "a"}, "values": [[1700000000, "high"]]}]}',
    )
    return [CheckCall(body) for body in bodies]


def _tokens(given: CheckInput) -> list[CheckCall]:
    (valid,) = _typical(given)
    return [CheckCall(valid.body, token="none"), CheckCall(valid.body, token="wrong")]  # noqa: S106


CHECKS = (
    ConformanceCheck(
        "health",
        "GET /healthz answers 2xx, without a token, within 5 s",
        judges.health,
        needs="nothing",
    ),
    ConformanceCheck(
        "config",
        "the config is a JSON document that the hub accepts, without unknown fields",
        judges.config,
        needs="nothing",
    ),
    ConformanceCheck(
        "registration",
        "a DynamicScorer with this configURL has a score name, a usable source and an endpoint",
        judges.registration,
        needs="config",
    ),
    ConformanceCheck(
        "scoring", "a typical request is answered with 2xx", judges.scoring, _typical, "endpoint"
    ),
    ConformanceCheck(
        "schema",
        "that answer is a scoring response of type application/json",
        judges.schema,
        needs="answer",
    ),
    ConformanceCheck(
        "empty",
        "an empty list of series is answered",
        judges.accepted,
        lambda given: [CheckCall(given.body(()))],
    ),
    ConformanceCheck(
        "few-samples",
        "series with one sample and with none are answered",
        judges.accepted,
        _few_samples,
    ),
    ConformanceCheck(
        "not-finite",
        "samples that are NaN or infinite are answered, and no score is",
        judges.not_finite,
        _not_finite,
    ),
    ConformanceCheck(
        "large", "many series with many samples are answered, or refused", judges.large, _large
    ),
    ConformanceCheck(
        "determinism",
        "two equal requests have equal answers",
        judges.determinism,
        lambda given: _typical(given) * 2,
    ),
    ConformanceCheck(
        "dimensions", "the labels of each result make a name of its own", judges.dimensions
    ),
    ConformanceCheck(
        "values",
        "with --data: values lie in -100..100, are not all 0 after rounding down, and come from"
        " scores in the declared range",
        judges.values,
        needs="own series",
    ),
    ConformanceCheck(
        "content-type",
        "a body of another content type is refused with 4xx, or taken as JSON",
        judges.other_content_type,
        _other_content_type,
        "answer",
    ),
    ConformanceCheck(
        "malformed",
        "a body that is not JSON is refused with 4xx",
        judges.refused,
        _malformed,
        "answer",
    ),
    ConformanceCheck(
        "wrong-shape",
        "JSON that is not a scoring request is refused with 4xx",
        judges.refused,
        _wrong_shape,
        "answer",
    ),
    ConformanceCheck(
        "token",
        "with --token-file: calls without the token are refused with 401 or 403",
        judges.token,
        _tokens,
        "token",
    ),
    ConformanceCheck(
        "survival",
        "the health endpoint answers after all that",
        judges.survival,
        needs="endpoint",
        probes=True,
    ),
    ConformanceCheck(
        "latency",
        "every call has its complete answer within the agent's time limit",
        judges.latency,
        needs="endpoint",
    ),
)
"""All checks; each sees the outcomes of those before it."""

NAMES = tuple(check.name for check in CHECKS)
