"""How a score becomes the value that is published: normalized, rounded down, clamped.

And what counts where a round fails or there is nothing to score, and what scores forecast.
"""

import math
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from dsf.api.crd.structural_schema import rule, rules
from dsf.api.untrusted_text import listed
from dsf.api.wire_model import UnlessEmpty, UnlessNone, WireModel

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


LONGEST_HOLD_SECONDS = 2_592_000
"""30 days."""

MOST_DEFAULT_ENTRIES = 100
"""Names of entries with the default score: the hub sends them to every managed cluster."""


class OnFailure(WireModel):
    """What counts once the last good scores have expired and rounds still fail."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(self.policy != 'Hold' || has(self.holdSeconds))"
                " && (self.policy != 'Value' || has(self.value))",
                "policy Hold needs holdSeconds, policy Value needs value",
            )
        )
    )

    policy: Literal["Expire", "Hold", "Value"] = Field(
        "Expire",
        description="Expire: the scores end. Hold: they stay for holdSeconds more."
        " Value: every entry has that value until a round succeeds.",
    )
    hold_seconds: UnlessNone[int] = Field(
        None,
        ge=1,
        le=LONGEST_HOLD_SECONDS,
        description="Seconds that expired scores stay valid, for policy Hold.",
    )
    value: UnlessNone[int] = Field(
        None, ge=LOWEST, le=HIGHEST, description="Value of every entry, for policy Value."
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.policy == "Hold" and self.hold_seconds is None:
            raise ValueError("policy Hold needs holdSeconds")
        if self.policy == "Value" and self.value is None:
            raise ValueError("policy Value needs value")
        return self

    def __str__(self) -> str:
        match self.policy:
            case "Hold":
                return f"Hold {self.hold_seconds} s"
            case "Value":
                return f"Value {self.value}"
        return self.policy


class DefaultScore(WireModel):
    """What counts on a managed cluster that has nothing to score: no such hardware, no metric."""

    value: int = Field(
        ge=LOWEST,
        le=HIGHEST,
        description="Value of the entries, as it is published: normalize does not change it.",
    )
    entries: UnlessEmpty[list[Annotated[str, Field(min_length=1, max_length=1024)]]] = Field(
        default_factory=list,
        max_length=MOST_DEFAULT_ENTRIES,
        description="Names of the entries that have it. By default those of the dimension"
        " formats that name only ${cluster} and ${scoreName}.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )

    def __str__(self) -> str:
        named = f" of {listed(self.entries)}" if self.entries else ""
        return f"{self.value}{named}"


LONGEST_HORIZON_SECONDS = 86_400
"""A day: agents keep forecasts in memory until the truth is known, and lose them at a restart."""

MEDIAN = 0.5
"""The quantile of a forecast that is as often too high as too low."""


class ForecastTruth(WireModel):
    """Where an agent reads what became of the forecasts."""

    query: str = Field(
        min_length=1,
        max_length=65536,
        pattern=r"\S",
        description="PromQL, sent to the source of the scorer. Its values are in the units of"
        " the scores, before normalize. Its labels give, by scoreDimensionFormat, the names of"
        " the entries.",
    )


class ForecastRules(WireModel):
    """Scores are forecasts of a value that can be measured later; agents compare both."""

    horizon: int = Field(
        ge=1,
        le=LONGEST_HORIZON_SECONDS,
        description="Seconds from a scoring to the time that its scores forecast.",
    )
    truth: ForecastTruth = Field(description="The measured value of each entry.")
    quantile: float = Field(
        MEDIAN,
        gt=0,
        lt=1,
        description="Which quantile of the truth the scores forecast: 0.9 is a bound that the"
        " truth exceeds one time in ten.",
    )

    def __str__(self) -> str:
        bound = "" if self.quantile == MEDIAN else f", quantile {self.quantile:g}"
        return f"{self.horizon} s ahead{bound}, truth {self.truth.query}"


DeclaredForecast = Annotated[
    ForecastRules | None,
    Field(
        default=None,
        description="What the scores forecast. Agents compare them with the truth, and report"
        " how far they can be trusted.",
    ),
]
"""The field `forecast` of a DynamicScorer and of `/config`."""
