"""Makes text from the cluster safe to show to a model.

Anybody may have written the names, descriptions and labels in a cluster, so they may carry a
prompt injection. They are shown as data: cut to a length, without invisible characters, and in
double quotes that the text cannot close.
"""

import json
import unicodedata
from typing import TypeVar

from pydantic import BaseModel

TEXT_LIMIT = 300
"""Characters: more than the longest name in Kubernetes has (253)."""

MESSAGE_LIMIT = 2000
"""Characters of a message that this program made, which may quote several names."""

_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

M = TypeVar("M", bound=BaseModel)


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text on one line, cut to `limit` characters, without invisible characters."""
    spaced = " ".join(text[: 4 * limit].split())
    shown = "".join(
        _REPLACEMENT if unicodedata.category(character) in _INVISIBLE else character
        for character in spaced
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def quoted(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text as a JSON string, which cannot end before its closing quote."""
    return json.dumps(clean(text, limit), ensure_ascii=False)


def cleaned(model: M) -> M:
    """Return a copy of the model with every string in it cleaned."""
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
