"""Render the manifests that OCM's operators would install."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The actions of Go's text/template that those manifests use.
ACTION = re.compile(r"{{-?\s*(.*?)\s*-?}}")


def render(template: str, values: Mapping[str, str]) -> str:
    """Fill in a Go template in which every condition is false and every list is empty.

    The operators' manifests are like this for a hub without labels and cloud registration.
    ``{{ .Name }}`` takes ``values["Name"]``. Raises KeyError for a value that is not given and
    ValueError for an action of another form.
    """
    return "".join(kept(tokens(template), values))


def tokens(template: str) -> Iterator[tuple[str, str]]:
    """The template as ("text" | "action", content) pairs."""
    position = 0
    for found in ACTION.finditer(template):
        yield "text", template[position : found.start()]
        yield "action", found[1]
        position = found.end()
    yield "text", template[position:]


def kept(stream: Iterator[tuple[str, str]], values: Mapping[str, str]) -> Iterator[str]:
    """The text outside every branch that is not taken."""
    branches: list[bool] = []
    for sort, content in stream:
        word = content.split(maxsplit=1)[0] if sort == "action" and content else ""
        if word in ("if", "range"):
            branches.append(False)
        elif word == "else":
            # ``else if`` tests a condition too, and every condition is false.
            branches[-1] = content == "else"
        elif word == "end":
            branches.pop()
        elif all(branches):
            yield value_of(content, values) if sort == "action" else content


def value_of(action: str, values: Mapping[str, str]) -> str:
    """The value of ``.Name``."""
    if not re.fullmatch(r"\.\w+", action):
        raise ValueError(f"a template action that this hub does not know: {action}")
    return values[action[1:]]
