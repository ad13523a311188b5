"""The base of all wire types: camelCase on the wire, snake_case in code, unknown fields ignored."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """A frozen wire value; it ignores unknown fields, so that newer peers can add fields."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
    )
