"""A marker in every field of what servers answer appears in messages quoted, or not at all.

The fields are those of the wire types, so a new field is tested without a change here.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from pydantic import BaseModel

from dsf.agent.failure import Failure
from dsf.agent.wire import prometheus_answer, scoring_answer
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.snapshot.config_document import read_config
from tests.dsf.hub.builders import api_config
from tests.house.marker import MARKER, WORDS, raw, unquoted

URL = "http://server/path"
MATRIX = {"metric": {"pod": "a"}, "values": [[1, "2"]], "value": [1, "2"], "histograms": []}
PROMETHEUS = {
    "status": "success",
    "data": {"resultType": "matrix", "result": [MATRIX]},
    "errorType": "bad_data",
    "error": "wrong",
    "warnings": ["careful"],
    "infos": ["note"],
    "isPartial": False,
}
SCORING = {"results": [{"metric": {"pod": "a"}, "score": 1}]}
VALUES: tuple[Any, ...] = (MARKER, [MARKER], {MARKER: MARKER}, [[MARKER, MARKER]])


def _structs(struct: type[msgspec.Struct]) -> Iterator[str]:
    """Yield the names on the wire of all fields of a struct and of the structs in it."""
    for field in msgspec.structs.fields(struct):
        yield field.encode_name
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from _structs(inner)


def _models(model: type[BaseModel]) -> Iterator[str]:
    """Yield the names on the wire of all fields of a model and of the models in it."""
    for name, annotation in get_type_hints(model).items():
        if name in model.model_fields:
            yield model.model_fields[name].alias or name
            for inner in (annotation, *get_args(annotation)):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    yield from _models(inner)


def _changed(document: Any, field: str, value: Any) -> Any:
    """Return a document with every value of a field replaced, and with the value as a key too."""
    if isinstance(document, Mapping):
        return {
            key: value if key == field else _changed(item, field, value)
            for key, item in document.items()
        }
    if isinstance(document, list):
        return [_changed(item, field, value) for item in document]
    return document


def _safe(message: str) -> None:
    assert not unquoted(message)
    assert not raw(message)


PROMETHEUS_FIELDS = sorted(
    {*_structs(prometheus_answer._QueryAnswer), *_structs(prometheus_answer._QuerySeries)}
)


@pytest.mark.parametrize("value", VALUES, ids=["text", "list", "object", "pairs"])
@pytest.mark.parametrize("field", PROMETHEUS_FIELDS)
@pytest.mark.parametrize("status", [200, 422, 500])
def test_what_a_source_answers(field: str, value: Any, status: int) -> None:
    for start in (PROMETHEUS, {**PROMETHEUS, "status": "error"}):
        body = json.dumps(_changed(start, field, value)).encode()
        found = prometheus_answer.parse_query_answer(URL, HttpAnswer(status, MARKER, body))
        said = [found.message] if isinstance(found, Failure) else found.warnings
        for text in said:
            _safe(text)


@pytest.mark.parametrize("value", VALUES, ids=["text", "list", "object", "pairs"])
@pytest.mark.parametrize("field", sorted(set(_structs(scoring_answer._EncodedAnswer))))
@pytest.mark.parametrize("status", [200, 500])
def test_what_a_scoring_api_answers(field: str, value: Any, status: int) -> None:
    body = json.dumps(_changed(SCORING, field, value)).encode()
    found = scoring_answer.parse_scoring_answer(URL, HttpAnswer(status, MARKER, body), 10)
    if isinstance(found, Failure):
        _safe(found.message)


def test_a_body_that_is_no_json() -> None:
    for status in (200, 304, 404, 503):
        answer = HttpAnswer(status, MARKER, MARKER.encode())
        failures = (
            prometheus_answer.parse_query_answer(URL, answer),
            scoring_answer.parse_scoring_answer(URL, answer, 10),
        )
        for failure in failures:
            assert isinstance(failure, Failure)
            assert WORDS in failure.message
            _safe(failure.message)


@pytest.mark.parametrize("value", VALUES, ids=["text", "list", "object", "pairs"])
@pytest.mark.parametrize("field", sorted(set(_models(ScorerConfig))))
def test_what_is_served_as_config(field: str, value: Any) -> None:
    served = _changed(api_config(), field, value)
    for document in (served, {**served, MARKER: MARKER}):
        found = read_config(json.dumps(document).encode())
        for text in [found.message] if isinstance(found, InvalidInput) else found.unknown:
            _safe(text)


def test_the_fields_are_found() -> None:
    assert {"resultType", "errorType", "infos", "metric", "values"} <= set(PROMETHEUS_FIELDS)
    assert {"scoreDimensionFormat", "params", "onFailure"} & set(_models(ScorerConfig))
