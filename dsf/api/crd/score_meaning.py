"""What scores mean: as declared in a DynamicScorer or in `/config`, and as published.

What is declared speaks of the scores that the scoring API returns. What is published has gone
through `scoring.normalize`, which has no unit and may turn the direction round.
"""

import math
from typing import Literal, Self, get_args

from pydantic import ConfigDict, Field, model_validator

from dsf.api.crd.score_rules import Normalize, published_value
from dsf.api.crd.structural_schema import rule, rules
from dsf.api.untrusted_text import UntrustedName
from dsf.api.wire_model import WireModel

Direction = Literal["HigherIsBetter", "LowerIsBetter"]

_DIRECTIONS: dict[str, Direction] = {name.lower(): name for name in get_args(Direction)}

UNIT_LENGTH = 32
"""Characters of a unit: it stands in the head of a table."""

DISPLAY_NAME_LENGTH = 100
"""Characters of a display name: it stands in one line with other texts."""

_VISIBLE = r"[^\x00-\x20\x7f-\xa0]"
_ONE_LINE = rf"^{_VISIBLE}([^\x00-\x1f\x7f-\x9f]*{_VISIBLE})?$"
"""Text without control characters, and without blanks at its ends."""


class ScoreRange(WireModel):
    """The range in which scores can be; at least one end."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("has(self.min) || has(self.max)", "a range needs min or max"),
            rule(
                "!has(self.min) || !has(self.max) || self.min < self.max",
                "min has to be less than max",
            ),
        )
    )

    min: float | None = Field(None, allow_inf_nan=False, description="No score is less.")
    max: float | None = Field(None, allow_inf_nan=False, description="No score is greater.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("a range needs min or max")
        if self.min is not None and self.max is not None and not self.min < self.max:
            raise ValueError("min has to be less than max")
        return self

    def contains(self, score: float) -> bool:
        """Tell whether a score is within the range."""
        return (self.min is None or self.min <= score) and (self.max is None or score <= self.max)

    def __str__(self) -> str:
        low = "" if self.min is None else f"{self.min:g}"
        return f"{low}..{'' if self.max is None else f'{self.max:g}'}"


class DeclaredMeaning(WireModel):
    """What the scores that the scoring API returns mean, before `scoring.normalize`."""

    display_name: str | None = Field(
        None,
        max_length=DISPLAY_NAME_LENGTH,
        pattern=_ONE_LINE,
        description="Name of the score for people, such as CPU cores in use.",
    )
    unit: str | None = Field(
        None,
        max_length=UNIT_LENGTH,
        pattern=_ONE_LINE,
        description="Unit of the scores that the API returns, such as cores, W or gCO2eq/kWh.",
    )
    direction: str | None = Field(
        None,
        max_length=14,
        pattern=r"(?i)^(higherisbetter|lowerisbetter)$",
        description="HigherIsBetter or LowerIsBetter, in any letter case, for the scores that"
        " the API returns; scoring.normalize.invert turns it round for what is published.",
    )
    range: ScoreRange | None = Field(
        None,
        description="Range of the scores that the API returns. Others are counted, and still"
        " published.",
    )


class PublishedMeaning(WireModel):
    """What the published scores mean, after scoring.normalize; fields are absent if not known."""

    display_name: str | None = Field(None, description="Name of the score for people.")
    unit: str | None = Field(
        None, description="Unit of the published scores; normalized ones have none."
    )
    direction: Direction | None = Field(
        None, description="Whether a higher or a lower published score is better."
    )
    range: ScoreRange | None = Field(None, description="Range of the published scores.")


def published(declared: DeclaredMeaning, normalize: Normalize | None) -> PublishedMeaning:
    """Return what scores mean after `normalize`, rounding and clamping.

    `invert` turns the direction round. Without a declared direction it says that less was better,
    so that more is better after it.
    """
    direction = read_direction(declared.direction)
    if normalize and normalize.invert:
        direction = "LowerIsBetter" if direction == "HigherIsBetter" else "HigherIsBetter"
    changed = {
        "unit": None if normalize else declared.unit,
        "direction": direction,
        "range": _published_range(declared.range, normalize),
    }
    every = {field: getattr(declared, field) for field in PublishedMeaning.model_fields}
    return PublishedMeaning.model_validate({**every, **changed})


def normalized_ends(
    declared: ScoreRange, normalize: Normalize | None = None
) -> tuple[float, float]:
    """Return the lowest and the highest score after `normalize`; infinite where an end is open."""
    low = -math.inf if declared.min is None else declared.min
    high = math.inf if declared.max is None else declared.max
    if normalize:
        low, high = sorted(map(normalize.of, (low, high)))
    return low, high


def in_words(meaning: PublishedMeaning) -> str:
    """Return what published scores mean on one line, others' texts quoted; empty if not known."""
    named = meaning.display_name and str(UntrustedName(meaning.display_name))
    better = meaning.direction and meaning.direction.removesuffix("IsBetter").lower()
    unit = meaning.unit and f"unit {UntrustedName(meaning.unit)}"
    return ", ".join(
        filter(None, (named, better and f"{better} is better", str(meaning.range or ""), unit))
    )


def _published_range(declared: ScoreRange | None, normalize: Normalize | None) -> ScoreRange | None:
    """Return the range of the published scores; None if it is not known, or is one number."""
    if declared is None:
        return None
    least, most = map(published_value, normalized_ends(declared, normalize))
    return ScoreRange(min=least, max=most) if least < most else None


def read_direction(text: str | None) -> Direction | None:
    """Return the direction that a text names in any letter case; None if it names none."""
    return _DIRECTIONS.get((text or "").lower())
