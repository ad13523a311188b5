"""A marker in every text of a summary, a result or an object is escaped where people look."""

import io
import json
import logging
from typing import Any, get_type_hints

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dsf.agent.failure import Failure
from dsf.agent.metrics import AgentMetrics
from dsf.agent.score.explanation import RoundEvidence, explain
from dsf.agent.score.result_rules import ConversionSettings, convert
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput
from dsf.runtime.logs import Format, set_up
from tests.dsf.agent.builders import scoring_result, summary
from tests.house.marker import MARKER, WORDS, forged_lines, raw, unquoted

TEXTS = [name for name, kind in get_type_hints(ScorerSummary).items() if kind is str]
LABELLED = scoring_result(1.5, {**dict.fromkeys(PLACEHOLDERS, MARKER), MARKER: MARKER})


def _form() -> ConversionSettings:
    dimension = DimensionFormat.parse("${node};${namespace};${pod};${app}")
    assert not isinstance(dimension, InvalidInput)
    return ConversionSettings("east", "score", dimension)


def _evidence() -> RoundEvidence:
    series = EncodedSeries(json.dumps({MARKER: MARKER}).encode(), b'[[1, "2"]]')
    return RoundEvidence([f"http://server/{MARKER}"], (series,), (LABELLED,), _form())


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("scored", [True, False])
def test_an_explanation_is_escaped(field: str, scored: bool) -> None:
    one = summary().model_copy(update={field: MARKER})
    scores = convert(_evidence().results, _form()) if scored else None
    failure = None if scored else Failure("source", "BadAnswer", MARKER)
    shown = explain(one, _evidence(), scores, failure)
    assert not raw(shown)
    assert not forged_lines(shown)


def test_labels_of_metrics_can_forge_no_line_and_are_read_back_as_they_are() -> None:
    registry = CollectorRegistry()
    metrics = AgentMetrics(registry, lambda: 0.0)
    samples = convert([LABELLED], _form()).samples
    metrics.scores.replace(MARKER, samples, valid_until=1.0)
    metrics.api_called(MARKER, f"http://server/{MARKER}", "200", 1.0)
    metrics.round_finished(MARKER, MARKER, {"fetch": 1.0})
    shown = generate_latest(registry).decode()
    assert WORDS in shown
    assert not unquoted(shown)
    assert not forged_lines(shown)
    read = [
        sample.labels.get("ds_node")
        for family in text_string_to_metric_families(shown)
        for sample in family.samples
        if sample.name == "dynamic_score"
    ]
    assert read == [samples[0].labels[PLACEHOLDERS.index("node")]]


VALUES = [MARKER, [MARKER], {MARKER: MARKER}, (MARKER,), ValueError(MARKER)]


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_line_of_a_log_is_one_line_of_visible_characters(format_: Format, value: Any) -> None:
    stream = io.StringIO()
    set_up("info", format_, stream)
    log = logging.getLogger("dsf.test")
    log.info("said %s", value, extra={"found": value})
    log.error("failed", exc_info=ValueError(value), extra={"found": value})
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert WORDS in line
        assert not raw(line)
        assert not unquoted(line)
