"""JSON values at the boundary of the hub: copied on the way in and on the way out."""

import marshal
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from dsf.kube.errors import BadRequest

_LEAST_INT64, _LARGEST_INT64 = -(2**63), 2**63 - 1
_LARGEST_EXACT = 2**53 - 1
"""The largest integer up to which every integer is an exact float."""
_WITHOUT_REFERENCES = 2
"""The version of marshal in which equal values are equal bytes, however they are shared."""
MAX_DEPTH = 200
"""Levels of nesting: far above real objects, and below the recursion limit of Python."""


def copied(value: Any) -> Any:
    """Return a copy of a JSON value that shares no container with it."""
    return msgspec.to_builtins(value)


def frozen(value: Any) -> bytes:
    """Return an accepted JSON value as a key of a cache, which costs less than its JSON text."""
    return marshal.dumps(value, _WITHOUT_REFERENCES)


def thawed(key: bytes) -> Any:
    """Return the JSON value of a key that `frozen` returned."""
    return marshal.loads(key)  # noqa: S302 - the bytes are this process's own


def accepted(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a copy of a caller's value as JSON represents it; raises BadRequest for NaN etc.

    A float with an exact integer value becomes an integer, an integer beyond 64 bits a float.
    Raises TypeError for Python objects that JSON cannot represent.
    """
    if depth == 0:
        raise BadRequest(f"the object is nested deeper than {MAX_DEPTH} levels")
    # Nearly every value is of one of these types, which a comparison finds faster than a match.
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int and _LEAST_INT64 <= value <= _LARGEST_INT64:
        return value
    if kind is dict:
        return {
            key if type(key) is str and key.isascii() else _key(key): (
                item if type(item) is str and item.isascii() else accepted(item, depth - 1)
            )
            for key, item in value.items()
        }
    return _other(value, depth)


def _other(value: Any, depth: int) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _text(value)
        case int() | float():
            return _number(value)
        case list() | tuple():
            return [accepted(item, depth - 1) for item in value]
        case Mapping():
            return {_key(key): accepted(item, depth - 1) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is not a JSON value: {value!r}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{key!r} is not a JSON key: it is {type(key).__name__}, not str")
    return _text(key)


def _text(text: str) -> str:
    """Return a plain text with lone surrogates replaced, because UTF-8 cannot encode them.

    A subclass of `str` may print itself in another way; its own characters count.
    """
    if text.isascii():
        return str.__str__(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _number(value: float) -> float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadRequest(f"{value} is not a JSON number")
        exact = value.is_integer() and abs(value) <= _LARGEST_EXACT
        return int(value) if exact else float(value)
    integer = int(value)
    if _LEAST_INT64 <= integer <= _LARGEST_INT64:
        return integer
    try:
        return float(integer)
    except OverflowError as error:
        problem = f"an integer of {integer.bit_length()} bits is too large for a number"
        raise BadRequest(problem) from error
