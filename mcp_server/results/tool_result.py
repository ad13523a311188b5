"""What every result of a tool has: bounded lists, cleaned texts, a JSON form and an output schema.

Lists are in a fixed order, and every text is cut to a length.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from dsf.api.untrusted_text import (
    MESSAGE_LIMIT,
    UntrustedName,
    UntrustedText,
    cleaned,
    plain,
    quoted,
)
from optimizer.domain.issue import Issue
from optimizer.follow.overview.constraints.constraint_fields import Constraints
from optimizer.follow.overview.what_if import WhatIf
from optimizer.plan.text.approval_questions import first_lines
from optimizer.wire.base import ResultPart
from optimizer.wire.request_problem import (
    REQUEST_FIELDS,
    UNPROCESSABLE,
    RequestProblem,
    field_problems,
    known_fields,
)

LIST_LIMIT = 100
"""Items of one list in a result; further items are only counted."""

ANSWER_CHARACTERS = 5_900
"""Characters of one answer, its text and its JSON together: an assistant pays for each.

With the age of what was read, which is added to each answer, these are at most 6,000.
"""

PAGE_CHARACTERS = 5_600
"""Characters of an answer whose further lists are on further pages."""

LEAST_CHARACTERS = 1_000
"""Characters that the JSON has beside a text that is longer than an answer: one that was asked."""

_ARGUMENTS = {"body": "arguments"}
"""Fields that have another name in a tool than in the HTTP API."""


class _Objects(BaseModel):
    """The arguments that are objects."""

    what_if: WhatIf
    remember: Constraints


Part = TypeVar("Part", bound=ResultPart)

Omitted = Annotated[
    dict[str, int], Field(description="How many items of each list are left out; empty: none.")
]


def bounded(part: Part, most: int = LIST_LIMIT, offset: int = 0, **most_of: int) -> Part:
    """Return a part of a result, cleaned, with each list cut and its rest counted in `omitted`.

    `offset`: items that each list skips. `most_of`: the length of single lists, by their names.
    """
    shown, omitted = cut_lists(part, most, offset, **most_of)
    return cleaned_texts(shown.model_copy(update={"omitted": omitted}))


def cut_lists(
    part: Part, most: int, offset: int = 0, **most_of: int
) -> tuple[Part, dict[str, int]]:
    """Return a part of a result with each list cut, and how many items each leaves out after it."""
    lists = {name: value for name, value in part if isinstance(value, tuple)}
    ends = {name: offset + most_of.get(name, most) for name in lists}
    left = {name: len(value) - ends[name] for name, value in lists.items()}
    shown = part.model_copy(update={name: lists[name][offset : ends[name]] for name in lists})
    return shown, {name: count for name, count in left.items() if count > 0}


def next_page(page: ResultPart, end: int) -> str:
    """Return the line that says what a page leaves out and where the next begins; empty: none."""
    left = getattr(page, "omitted", {}).items()
    counts = ", ".join(f"{count} {UntrustedName(name)}" for name, count in left)
    return f"\nLeft out: {counts}. Next page: offset {end}." if left else ""


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


def fitted(content: dict[str, Any], text: str, answer: int) -> dict[str, Any]:
    """Return the JSON of a result, its longest lists cut until it fits an answer with the text.

    `answer`: the characters of both. What goes is counted in `omitted`, by the path of its list.
    """
    most = max(LEAST_CHARACTERS, answer - len(text))
    left = Counter[str](content.get("omitted"))
    while json_characters({**content, "omitted": left}) > most:
        path, items = max(
            _lists(content), key=lambda found: json_characters(found[1]), default=("", [])
        )
        if not items:
            break
        items.pop()
        left[path] += 1
    return {**content, "omitted": dict(left)} if left else content


def _lists(value: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield each list that is no part of another one, with its path."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _lists(inner, f"{within}{name}.")
        elif isinstance(inner, list) and name != "untrusted":
            yield f"{within}{name}", inner


def json_characters(value: Any) -> int:
    """Return how long a value is as JSON with spaces, in which many hosts show it to a model."""
    return len(json.dumps(value, ensure_ascii=False))


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
    found = error.errors(include_url=False, include_input=False)
    problems = field_problems(found, {**REQUEST_FIELDS, **known_fields(_Objects)})
    lines = [f"{_ARGUMENTS.get(item.field, item.field)}: {item.message}" for item in problems]
    return "\n".join(map(cleaned, first_lines(lines, LIST_LIMIT, what=" wrong arguments")))


@cache
def outline(result: type[ResultPart]) -> dict[str, Any]:
    """Return the JSON schema of a result that names its fields.

    A full schema of all results takes five times the tokens of everything else that tools say.
    """
    fields = result.model_json_schema(mode="serialization").get("properties", {})
    return {"type": "object", "properties": {name: {} for name in fields}}
