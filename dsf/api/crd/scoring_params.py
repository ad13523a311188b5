"""The parameters of a score: its name, its interval, and those that only the scoring API reads."""

import math
import re
from collections.abc import Mapping
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from dsf.api.untrusted_text import UntrustedName
from dsf.api.wire_model import WireModel

ParamValue = str | int | float | bool

MOST_PARAMS = 32
"""Further parameters of one scorer: each call of every managed cluster carries them."""

LONGEST_PARAM = 1024
"""Characters of a parameter that is text."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_OWN_PARAMS = 2
_INT64 = range(-(2**63), 2**63)


class ScoringParams(WireModel):
    """The name of the score and the scoring interval; further parameters go to the scoring API."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "additionalProperties": {
                "type": ["string", "number", "boolean"],
                "maxLength": LONGEST_PARAM,
            },
            "maxProperties": MOST_PARAMS + _OWN_PARAMS,
        },
    )

    name: str | None = Field(
        None,
        max_length=253,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        description="Name of the score; the AddOnPlacementScore has it with '_' as '-'.",
    )
    interval: int | None = Field(
        None, ge=1, le=604_800, description="Seconds between two scorings."
    )

    @property
    def further(self) -> dict[str, ParamValue]:
        """The parameters that the scoring API gets, such as a model or a horizon."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if problem := params_problem(self.further):
            raise ValueError(problem)
        return self


def params_problem(params: Mapping[str, ParamValue]) -> str:
    """Return why a scoring API can't get these parameters; empty if it can."""
    if len(params) > MOST_PARAMS:
        return f"{len(params)} further parameters: give at most {MOST_PARAMS}"
    for key, value in params.items():
        if not _KEY.fullmatch(key):
            shown = UntrustedName(key[:LONGEST_PARAM])
            return f"parameter {shown}: a name has at most 63 letters, digits, '_', '.' and '-'"
        if problem := _problem(value):
            return f"parameter {key}: {problem}"
    return ""


def is_param(value: object) -> bool:
    """Tell whether a value has a type that a further parameter may have."""
    return isinstance(value, str | int | float)


def _problem(value: object) -> str:
    match value:
        case str():
            too_long = len(value) > LONGEST_PARAM
            return f"its text has more than {LONGEST_PARAM} characters" if too_long else ""
        case bool():
            return ""
        case int():
            return "" if value in _INT64 else "the number is too large"
        case float():
            return "" if math.isfinite(value) else "the number is not finite"
    return "give text, a number, true or false"
