"""What a scorer declares about its scores as forecasts: how far they look ahead, and the truth."""

from typing import Annotated

from pydantic import Field

from dsf.api.wire_model import WireModel

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
