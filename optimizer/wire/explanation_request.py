"""The questions that a request asks about its plan."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from optimizer.wire.base import Name, ObjectName, RequestPart


class WhyNotQuestion(RequestPart):
    """What would it cost to force this assignment, or this policy?"""

    cluster: ObjectName
    workload: Annotated[
        ObjectName | None, Field(description="The workload to force onto the cluster.")
    ] = None
    device: Annotated[
        Name,
        Field(
            max_length=253, description="The device to force it onto; empty: any of the cluster."
        ),
    ] = ""
    policy: Annotated[ObjectName | None, Field(description="The policy to force.")] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.workload is None) == (self.policy is None):
            raise ValueError("name one of workload and policy")
        if self.device and self.policy:
            raise ValueError("device: only a workload has one")
        return self
