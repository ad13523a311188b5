"""Suggests the known field that an unknown field of a request resembles."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

MAX_COMPARED_LENGTH = 64  # of a name that is compared with others

KnownFields = Mapping[str, Sequence[str]]
"""By the field that holds an object (empty for the whole), the fields that it can have."""


def known_fields(model: type[BaseModel]) -> dict[str, list[str]]:
    """Return the fields of a model and of those that it holds, by their names on the wire."""
    found: dict[str, list[str]] = {"": _names(model)}
    for name, inner in _inner(model):
        below = known_fields(inner)
        found = {**below, **found, name: below.pop("")}
    return found


def suggested_field(location: Sequence[str | int], known: KnownFields) -> str | None:
    """Return the known field most similar to the unknown one at a location; None if none is."""
    *outer, name = (part for part in location if isinstance(part, str))
    possible = {field.lower(): field for field in known.get(outer[-1] if outer else "", ())}
    near = get_close_matches(name[:MAX_COMPARED_LENGTH].lower(), possible, n=1)
    return possible[near[0]] if near else None


def _names(model: type[BaseModel]) -> list[str]:
    fields = model.model_fields.items()
    return [field.serialization_alias or field.alias or name for name, field in fields]


def _inner(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in zip(_names(model), model.model_fields.values(), strict=True):
        yield from ((name, inner) for inner in _models(field.annotation))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
