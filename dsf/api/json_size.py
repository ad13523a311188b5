"""What JSON becomes, bounded before and while it is decoded.

The memory and time of decoding follow the number of values rather than that of bytes, and a list of
a million wrong items has a million errors. So values are counted in the text first, and validation
stops at the first wrong item.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import CoreSchema

_COLLECTIONS = ("dict", "frozenset", "list", "set", "tuple")
_NO_SCHEMA = frozenset({"default", "expected", "metadata", "serialization"})
"""What a schema has besides other schemas."""


def object_count(text: bytes | bytearray) -> int:
    """Return an upper bound of the number of objects in JSON."""
    return text.count(b"{")


def value_count(text: bytes | bytearray) -> int:
    """Return an upper bound of the number of values in JSON; those of text count its commas."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


def first_error_only(schema: CoreSchema) -> CoreSchema:
    """Return a schema of pydantic whose collections stop at their first wrong item."""
    return cast("CoreSchema", _first_error_only(schema))


def _first_error_only(part: Any) -> Any:
    match part:
        case Mapping():
            found = {
                key: value if key in _NO_SCHEMA else _first_error_only(value)
                for key, value in part.items()
            }
            stops = found.get("type") in _COLLECTIONS
            return found | {"fail_fast": True} if stops else found
        case list():
            return [_first_error_only(item) for item in part]
        case _:
            return part
