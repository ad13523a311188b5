"""How a score becomes the value that is published: normalized, rounded down, clamped."""

import math
from fractions import Fraction
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from dsf.api.crd.structural_schema import rule, rules
from dsf.api.wire_model import WireModel

LOWEST, HIGHEST = -100, 100
"""The range of `status.scores[].value` that OCM's CRD accepts."""


def rounded(score: float) -> int:
    """Return a finite score as the whole number below it."""
    return math.floor(score)


def published_value(score: float) -> int:
    """Return the value of an entry: the score rounded down, within the range that OCM accepts."""
    return rounded(min(max(score, LOWEST), HIGHEST))


class Normalize(WireModel):
    """A linear map of the scorer's own units to 0..100.

    score = 100 (x - min) / (max - min), or 100 minus that with `invert`. Scores outside follow
    the same line until the range of AddOnPlacementScore clamps them.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(rule("self.min < self.max", "min has to be less than max"))
    )

    min: float = Field(allow_inf_nan=False, description="The score that becomes 0.")
    max: float = Field(allow_inf_nan=False, description="The score that becomes 100.")
    invert: bool = Field(False, description="Swap the ends: less is better, min becomes 100.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.min < self.max:
            raise ValueError("min has to be less than max")
        return self

    def of(self, score: float) -> float:
        """Return the normalized score; infinite on overflow and for an infinite score."""
        if math.isinf(score):
            return -score if self.invert else score
        # Fractions, because a score of exactly 57 must not become 56.99999999999999.
        low, high = Fraction(self.min), Fraction(self.max)
        part = high - Fraction(score) if self.invert else Fraction(score) - low
        try:
            return float(100 * part / (high - low))
        except OverflowError:
            return math.copysign(math.inf, part)

    def __str__(self) -> str:
        return f"{self.min:g}..{self.max:g}{' inverted' if self.invert else ''}"
