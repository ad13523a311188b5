"""The schema of `status.conditions` in our CRDs."""

from typing import Annotated, Literal

from pydantic import Field

from dsf.api.wire_model import WireModel


class ConditionModel(WireModel):
    """One aspect of the object's current state (`meta/v1` Condition)."""

    type: str = Field(max_length=316, description="The aspect that it is about, such as Ready.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the aspect holds.")
    reason: str = Field(
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        description="Why, in one word for programs, such as Unreachable.",
    )
    message: str = Field(max_length=32768, description="Why, in words for people, and what to do.")
    last_transition_time: str = Field(
        description="When the status last changed.", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int | None = Field(
        None,
        ge=0,
        description="metadata.generation that it is about; a lower one than the object's means"
        " that the latest change is not in it yet.",
    )


ConditionList = Annotated[
    list[ConditionModel],
    Field(
        description="The object's state by aspect, one entry for each type.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    ),
]
