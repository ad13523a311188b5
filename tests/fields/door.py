"""What a door is to the test of its fields, and the fields that a JSON schema publishes."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Schema = Mapping[str, Any]
Fields = dict[str, Any]
"""Values by path."""


@dataclass(frozen=True)
class Case:
    """A value of a field that must matter where `given` is so.

    `given`: the values of other fields, by path, in both questions. `on`: the state of the hub,
    by a name that the door knows. `why_not`: why no value can matter; then nothing is asked.
    """

    value: Any = None
    given: Fields = field(default_factory=dict)
    on: str = ""
    why_not: str = ""


@dataclass(frozen=True)
class Door:
    """A door: the fields that it publishes, a case for each, and how it is asked.

    `ask` returns what a caller sees and what is on the hub afterwards, without echoes of the
    question and without what differs from call to call.
    """

    name: str
    fields: Callable[[], Iterable[str]]
    cases: Mapping[str, Case]
    ask: Callable[[Fields, str], Awaitable[Any]]


def leaves(schema: Schema, root: Schema) -> Iterable[str]:
    """The path of each field that has no fields of its own; `root`: what `$ref` refers to.

    `[]` stands for each item of a list, `{}` for each key of a map.
    """
    return leaf_schemas(schema, root).keys()


def leaf_schemas(schema: Schema, root: Schema, path: str = "") -> dict[str, Schema]:
    """The schema of each such field, by its path."""
    found: dict[str, Schema] = {}
    for name, leaf in _inner(schema, root, path):
        found.setdefault(name, leaf)
    return found or ({path: resolved(schema, root)} if path else {})


def resolved(schema: Schema, root: Schema) -> Schema:
    """A schema, or the one that it refers to."""
    target: Any = schema
    while "$ref" in target:
        parts = target["$ref"].removeprefix("#/").split("/")
        target = root
        for part in parts:
            target = target[part]
    found: Schema = target
    return found


def _inner(schema: Schema, root: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    if "$ref" in schema:
        yield from _inner(resolved(schema, root), root, path)
    for group in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(group, ()):
            yield from _inner(option, root, path)
    for name, part in schema.get("properties", {}).items():
        yield from leaf_schemas(part, root, f"{path}.{name}".lstrip(".")).items()
    if isinstance(schema.get("items"), Mapping):
        yield from _inner(schema["items"], root, f"{path}[]")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _inner(schema["additionalProperties"], root, f"{path}{{}}")
    if "properties" in schema and schema.get("x-kubernetes-preserve-unknown-fields"):
        yield f"{path}{{}}", {}


def with_values(body: Fields, values: Fields) -> Fields:
    """Return a body with values at paths.

    `[]` is the first item of a list, `[1]` the second one, `{}` some key of a map.
    """
    changed = deepcopy(body)
    for path, value in values.items():
        _set(changed, path, deepcopy(value))
    return changed


def _set(body: Any, path: str, value: Any) -> None:
    parts = re.findall(r"[^.\[\]]+|\[\d*\]", path.replace("{}", ".some"))
    for at, part in enumerate(parts):
        key = int(part[1:-1] or 0) if part[0] == "[" else part
        if at == len(parts) - 1:
            body[key] = value
            return
        empty: Any = [] if parts[at + 1][0] == "[" else {}
        if isinstance(body, list):
            body += [{} for _ in range(len(body), int(key) + 1)]
        elif key not in body or body[key] is None:
            body[key] = empty
        body = body[key]
