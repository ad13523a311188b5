"""What a request asks an explanation of."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from optimizer.wire.base import ObjectName, RequestPart


class WhyNotQuestion(RequestPart):
    """Why not this place, or this policy: what would forcing it cost?"""

    cluster: ObjectName
    workload: Annotated[
        ObjectName | None, Field(description="Asks about a place on the cluster.")
    ] = None
    device: Annotated[
        str, Field(max_length=253, description="Only this device of the cluster; else any.")
    ] = ""
    policy: Annotated[ObjectName | None, Field(description="Asks about enforcing it.")] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.workload is None) == (self.policy is None):
            raise ValueError("name what is asked about: either workload or policy")
        if self.device and self.policy:
            raise ValueError("device: says nothing about a policy")
        return self
