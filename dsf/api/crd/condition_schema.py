"""The schema of `status.conditions` in our CRDs."""

from typing import Annotated, Literal

from pydantic import Field

from dsf.api.wire_model import WireModel


class ConditionModel(WireModel):
    """One aspect of the object's current state (`meta/v1` Condition)."""

    type: Annotated[str, Field(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[
        str,
        Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ]
    message: Annotated[str, Field(max_length=32768)]
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    observed_generation: Annotated[int | None, Field(default=None, ge=0)]


ConditionList = Annotated[
    list[ConditionModel],
    Field(
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    ),
]
