"""What every result of a tool has: bounded lists, cleaned texts, a JSON form and an output schema.

Lists are in a fixed order, and every text is cut to a length.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from dsf.api.untrusted_text import (
    MESSAGE_LIMIT,
    UntrustedName,
    UntrustedText,
    cleaned,
    plain,
    quoted,
)
from optimizer.domain.issue import Issue
from optimizer.plan.text.approval_questions import first_lines
from optimizer.wire.base import ResultPart
from optimizer.wire.request_problem import (
    REQUEST_FIELDS,
    UNPROCESSABLE,
    RequestProblem,
    field_problems,
)

LIST_LIMIT = 100
"""Items of one list in a result; further items are only counted."""

_ARGUMENTS = {"body": "arguments"}
"""Fields that have another name in a tool than in the HTTP API."""

Part = TypeVar("Part", bound=ResultPart)

Omitted = Annotated[
    dict[str, int], Field(description="How many items of each list are left out; empty: none.")
]


def bounded(part: Part, most: int = LIST_LIMIT, **most_of: int) -> Part:
    """Return a part of a result, cleaned, with each list cut and its rest counted in `omitted`.

    `most_of`: the length of single lists, by their names.
    """
    shown, omitted = cut_lists(part, most, **most_of)
    return cleaned_texts(shown.model_copy(update={"omitted": omitted}))


def cut_lists(part: Part, most: int, **most_of: int) -> tuple[Part, dict[str, int]]:
    """Return a part of a result with each list cut, and how many items each leaves out."""
    lists = {name: value for name, value in part if isinstance(value, tuple)}
    limits = {name: most_of.get(name, most) for name in lists}
    left = {name: len(value) - limits[name] for name, value in lists.items()}
    shown = part.model_copy(update={name: lists[name][: limits[name]] for name in lists})
    return shown, {name: count for name, count in left.items() if count > 0}


def cleaned_texts(part: Part) -> Part:
    """Return a copy of a part of a result with every text in it cleaned."""
    return type(part).model_validate(_cleaned(part.model_dump()))


def bare_name(name: str) -> str:
    """Return a name of others, quoted once unless it is a word."""
    return str(UntrustedName(plain(name)))


def structured(part: ResultPart, *, brief: bool = False) -> dict[str, Any]:
    """Return a result as JSON; `untrusted` names its fields that hold text of others.

    `brief`: without the fields that are at their default.
    Sentences of this program are no such fields: they quote what others wrote.
    """
    shown = cleaned_texts(part)
    return {
        **shown.model_dump(mode="json", exclude_defaults=brief),
        "untrusted": sorted(set(_untrusted_fields(shown, ""))),
    }


def _untrusted_fields(value: object, field: str) -> Iterator[str]:
    match value:
        case UntrustedText():
            yield from [field] if value else []
        case ResultPart():
            yield from _of_members(value)
        case Issue():
            yield from _of_members((name, getattr(value, name)) for name in Issue.__slots__)
        case dict():
            yield from _untrusted_fields([*value, *value.values()], field)
        case list() | tuple():
            for inner in value:
                yield from _untrusted_fields(inner, field)


def _of_members(members: Iterable[tuple[str, object]]) -> Iterator[str]:
    for name, inner in members:
        yield from _untrusted_fields(inner, name)


def _cleaned(value: object) -> object:
    match value:
        case str():
            return cleaned(value)
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value


def refusal(problem: RequestProblem) -> str:
    """Return why a request was refused: one line for each wrong field, or the detail."""
    wrong = problem.errors if problem.status == UNPROCESSABLE else ()
    fields = [f"{error.field}: {error.message}" for error in wrong]
    lines = [quoted(text, MESSAGE_LIMIT) for text in fields or [problem.detail]]
    return "\n".join(first_lines(lines, LIST_LIMIT, what=" wrong fields"))


def wrong_arguments(error: ValidationError) -> str:
    """Return one line for each wrong argument."""
    problems = field_problems(error.errors(include_url=False, include_input=False), REQUEST_FIELDS)
    lines = [f"{_ARGUMENTS.get(item.field, item.field)}: {item.message}" for item in problems]
    return "\n".join(map(cleaned, first_lines(lines, LIST_LIMIT, what=" wrong arguments")))


def outline(result: type[ResultPart], inner: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of a result one level deep; of the lists in `inner`, also their items.

    A full schema of all results takes five times the tokens of everything else that tools say.
    """
    full = _schema(result)
    definitions = full.get("$defs", {})
    return {
        "type": "object",
        "properties": {
            name: {"type": _type(field), **(_items(field, definitions) if name in inner else {})}
            for name, field in full.get("properties", {}).items()
        },
    }


@cache
def _schema(result: type[ResultPart]) -> Mapping[str, Any]:
    return result.model_json_schema(mode="serialization")


def _type(field: Mapping[str, Any]) -> Any:
    if "type" in field:
        return field["type"]
    if "$ref" in field:
        return "object"
    if "anyOf" in field:
        found = [_type(option) for option in field["anyOf"]]
        return found if len(found) > 1 else found[0]
    return "string"


def _items(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of the fields that each item of a list has."""
    item = definitions[field["items"]["$ref"].rpartition("/")[2]]
    return {"items": {"properties": {name: {} for name in item["properties"]}}}
