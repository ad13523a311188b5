"""Which names of a call nobody has told before: a model would have had to guess them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

WORD = re.compile(r"[a-z0-9][a-z0-9._-]*", re.IGNORECASE)

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}t[0-9]{2}|[0-9]+[hm]", re.IGNORECASE)
"""Times and durations are no names: a model works them out."""

API_WORDS = frozenset({"Stepwise", "AllAtOnce"})
"""Values of POST /optimize that the documentation names and no answer does."""


def guessed(arguments: Mapping[str, Any], told: str, schemas: list[Any]) -> list[str]:
    """Return the names in a call's arguments that are in no text before it.

    `told`: the question and all answers. A name counts as told if it is a part of one, because
    tools take parts of names. Words of the tools' schemas, other than in examples, are no names.
    """
    known = API_WORDS | set(_schema_words(schemas))
    before = told.lower()
    return [
        word
        for word in _names(arguments)
        if word not in known
        and not word.isdigit()
        and not TIME.fullmatch(word)
        and word.lower() not in before
    ]


def _names(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from WORD.findall(value)
        case Mapping():
            for key, item in value.items():
                yield from (word for word in WORD.findall(str(key)))
                yield from _names(item)
        case list() | tuple():
            for item in value:
                yield from _names(item)


def _schema_words(schemas: list[Any]) -> Iterator[str]:
    yield from WORD.findall(json.dumps(_without_values(schemas)))


def _without_values(schema: Any) -> Any:
    """Return a schema without the values of its examples; their keys are names of fields."""
    if isinstance(schema, Mapping):
        return {
            key: _keys(item) if key == "examples" else _without_values(item)
            for key, item in schema.items()
        }
    if isinstance(schema, list):
        return [_without_values(item) for item in schema]
    return schema


def _keys(example: Any) -> list[Any]:
    """Return the field names of examples: the keys of objects that no name of the fleet is."""
    items: Iterable[Any] = example if isinstance(example, list) else ()
    found: list[Any] = []
    for item in items:
        if isinstance(item, Mapping):
            found += item
            for inner in item.values():
                found += _keys(inner)
    return found
