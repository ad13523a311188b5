"""The base of all wire types: camelCase on the wire, snake_case in code, unknown fields ignored."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from dsf.api.json_size import first_error_only


class WireModel(BaseModel):
    """A frozen wire value; it ignores unknown fields, so that newer peers can add fields."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema, in which a collection is validated up to its first wrong item."""
        return first_error_only(handler(source))
