"""The base of all wire types: camelCase on the wire, snake_case in code, unknown fields ignored."""

from collections.abc import Mapping
from operator import not_
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

_COLLECTIONS = ("dict", "frozenset", "list", "set", "tuple")
_NO_SCHEMA = frozenset({"default", "expected", "metadata", "serialization"})
"""What a schema has besides other schemas."""

Value = TypeVar("Value")

UnlessNone = Annotated[Value | None, Field(exclude_if=lambda value: value is None)]
"""What a document leaves out where it is not set."""

UnlessEmpty = Annotated[Value, Field(exclude_if=not_)]
"""What a document leaves out where it is not set, false or empty."""


def first_error_only(schema: CoreSchema) -> CoreSchema:
    """Return a schema of pydantic whose collections stop at their first wrong item."""
    return cast("CoreSchema", _first_error_only(schema))


def _first_error_only(part: Any) -> Any:
    match part:
        case Mapping():
            schema = {
                key: value if key in _NO_SCHEMA else _first_error_only(value)
                for key, value in part.items()
            }
            stops = schema.get("type") in _COLLECTIONS
            return schema | {"fail_fast": True} if stops else schema
        case list():
            return [_first_error_only(item) for item in part]
        case _:
            return part


class WireModel(BaseModel):
    """A frozen wire value; it ignores unknown fields, so that newer peers can add fields."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        defer_build=True,  # a command uses few of them
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema, in which a collection is validated up to its first wrong item."""
        return first_error_only(handler(source))
