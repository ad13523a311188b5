"""Every text of every wire type is typed by who wrote it, so that formatting quotes it."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, get_args, get_type_hints

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

import optimizer.wire
from dsf.api.untrusted_text import UntrustedText
from optimizer.domain.issue import Issue
from optimizer.wire.base import RequestPart, ResultPart, Sentence
from optimizer.wire.request_problem import FieldProblem, RequestProblem
from tests.house.marker import MARKER, WORDS, filled, raw, unquoted

OWN_TEXTS = {"digest", "output_yaml", "solver"}
"""Texts that this program writes alone."""
OBJECTS = {"RecordedStep.write", "RolloutPlan.objects", "RolloutPlan.steps"}
"""Kubernetes objects that are written to the hub as they are, and never formatted."""
CODES = {"reason", "title", "status"}
"""Fields of issues and problems that are constants of this program."""


def _models() -> Iterator[type[BaseModel]]:
    for module in pkgutil.iter_modules(optimizer.wire.__path__, "optimizer.wire."):
        for found in vars(importlib.import_module(module.name)).values():
            part = isinstance(found, type) and issubclass(found, RequestPart | ResultPart)
            if part and found.__module__ == module.name:
                yield found


def _fields() -> Iterator[Any]:
    for model in _models():
        for name, field in model.model_fields.items():
            if name not in OWN_TEXTS and f"{model.__name__}.{name}" not in OBJECTS:
                typed = (
                    Annotated[field.annotation, *field.metadata]
                    if field.metadata
                    else field.annotation
                )
                yield pytest.param(typed, id=f"{model.__name__}.{name}")


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, but not those of nested parts, which are tested themselves."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _texts(list(pair))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _has(annotation: Any, wanted: Any) -> bool:
    return annotation == wanted or any(_has(item, wanted) for item in get_args(annotation))


@pytest.mark.parametrize("annotation", list(_fields()))
def test_a_marker_in_a_text_is_refused_or_formatted_safely(annotation: Any) -> None:
    try:
        read = TypeAdapter(annotation).validate_python(_plain(filled(annotation)))
    except ValidationError:
        return  # the field takes words of a pattern only
    for text in _texts(read):
        assert not raw(f"{text}")
        if not _has(annotation, Sentence):
            assert not unquoted(f"{text}")


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


def test_the_fields_are_found() -> None:
    assert len(list(_fields())) > 100


SENTENCES = {"message", "detail", "field"}
"""Fields of issues and problems with words of this program, which may quote others."""


@pytest.mark.parametrize("made", [Issue, FieldProblem, RequestProblem])
def test_a_marker_in_an_issue_or_a_problem_is_formatted_safely(made: Any) -> None:
    codes = {item.name: "R" for item in fields(made) if item.name in CODES}
    texts = {
        name: filled(annotation)
        for name, annotation in get_type_hints(made).items()
        if name not in {*CODES, "errors"}
    }
    plain = made(**codes, **texts)
    quoting = made(**codes, **{**texts, **dict.fromkeys(SENTENCES & set(texts), _TYPED)})
    for name in texts:
        for value in (plain, quoting):
            for text in _texts(getattr(value, name)):
                assert WORDS in f"{text}"
                assert not raw(f"{text}")
                assert (value is plain and name in SENTENCES) or not unquoted(f"{text}")


_TYPED = UntrustedText(MARKER)
