"""Text that others wrote, made safe to show to a model.

Names, descriptions and labels reach the cluster from people and programs that nobody vouches for.
They are shown as data: cut to a length, without invisible characters, and in prose within double
quotes that they cannot close.
"""

import json
import unicodedata
from typing import TypeVar

from pydantic import BaseModel

TEXT_LIMIT = 300
"""Characters; longer than any name in Kubernetes."""

MESSAGE_LIMIT = 2000

_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

M = TypeVar("M", bound=BaseModel)


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text on one line, without control, format and private characters, cut to `limit`."""
    spaced = " ".join(text[: 4 * limit].split())
    shown = "".join(
        _REPLACEMENT if unicodedata.category(character) in _INVISIBLE else character
        for character in spaced
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def quoted(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text as a JSON string: it ends where its quotes end."""
    return json.dumps(clean(text, limit), ensure_ascii=False)


def cleaned(model: M) -> M:
    """Return the model with every string in it made safe."""
    return type(model).model_validate(_cleaned(model.model_dump()))


def _cleaned(value: object) -> object:
    match value:
        case str():
            return clean(value)
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value
