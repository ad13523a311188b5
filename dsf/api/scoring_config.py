"""DynamicScoringConfig: which scores go to which managed clusters."""

from typing import Annotated

from pydantic import Field

from dsf.api.condition_schema import ConditionList
from dsf.api.model import Wire


class Mask(Wire):
    """A score that is kept away from a cluster."""

    cluster_name: Annotated[
        str, Field(min_length=1, max_length=253, description="Name of the managed cluster.")
    ]
    score_name: Annotated[
        str,
        Field(min_length=1, max_length=253, description="Name of the score, as the API has it."),
    ]


_MaskList = Annotated[
    list[Mask], Field(max_length=10_000, json_schema_extra={"x-kubernetes-list-type": "atomic"})
]


class DynamicScoringConfigSpec(Wire):
    """What is distributed to the fleet."""

    masks: Annotated[_MaskList | None, Field(default=None, description="Scores kept away.")]
    mask: Annotated[
        _MaskList | None, Field(default=None, description="An older spelling of masks; both count.")
    ]

    @property
    def all_masks(self) -> tuple[Mask, ...]:
        """The masks of both spellings."""
        return (*(self.masks or ()), *(self.mask or ()))


class DynamicScoringConfigStatus(Wire):
    """What the hub controller did with it."""

    observed_generation: Annotated[
        int | None, Field(default=None, description="Generation this status speaks of.")
    ]
    scorers: Annotated[
        int | None, Field(default=None, description="Number of scorers distributed.")
    ]
    clusters: Annotated[
        int | None, Field(default=None, description="Number of managed clusters reached.")
    ]
    conditions: ConditionList | None = None
