"""When a PlacementOptimization looks and what it may move: what is refused, what is meant."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from optimizer.wire.keeping import Freeze, HoldSpec, Hysteresis, MoveBudget, Triggers

NIGHT = {"schedule": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("part", "given", "field", "message"),
    [
        (Freeze, {**NIGHT, "schedule": "0 25 * * *"}, "schedule", "is no schedule: bad hour"),
        (Freeze, {**NIGHT, "schedule": "9" * 500}, "schedule", "at most 120 characters"),
        (Freeze, {**NIGHT, "duration": "8"}, "duration", "such as 8h, 90m or 1h30m"),
        (Freeze, {**NIGHT, "duration": "0h"}, "duration", "such as 8h, 90m or 1h30m"),
        (Freeze, {**NIGHT, "timeZone": "Mars/X"}, "timeZone", "is no IANA time zone"),
        (Freeze, {"schedule": "@daily"}, "duration", "Field required"),
        (MoveBudget, {"moves": -1}, "moves", "from 0 to 1000000 or a percentage such as 10%"),
        (MoveBudget, {"moves": "101%"}, "moves", "from 0 to 1000000 or a percentage such as 10%"),
        (MoveBudget, {"moves": 1.5}, "moves", "from 0 to 1000000 or a percentage such as 10%"),
        (MoveBudget, {"moves": True}, "moves", "from 0 to 1000000 or a percentage such as 10%"),
        (MoveBudget, {"moves": 1, "schedule": "@daily"}, "", "state both or none"),
        (MoveBudget, {"moves": 1, "reasons": []}, "reasons", "at least 1 item"),
        (MoveBudget, {"moves": 1, "reasons": ["Bored"]}, "reasons", "'BetterScore', 'ClusterLost'"),
        (Triggers, {"scoreChange": -5}, "scoreChange", "greater than or equal to 0"),
        (Triggers, {"schedule": "soon"}, "schedule", "does not have 5 fields"),
        (Triggers, {"objects": ["ClusterPainted"]}, "objects", "'ClusterAdded'"),
        (Hysteresis, {"leastGain": -1}, "leastGain", "greater than or equal to 0"),
        (Hysteresis, {"leastGainPercent": "nan"}, "leastGainPercent", "finite number"),
        (Hysteresis, {"stabilizationWindowSeconds": -1}, "stabilizationWindowSeconds", "or equal"),
        (Hysteresis, {"variationMultiple": -1}, "variationMultiple", "greater than or equal"),
        (HoldSpec, {"until": "2026-01-01T00:00:00"}, "until", "time zone"),
        (HoldSpec, {"because": "x"}, "because", "Extra inputs are not permitted"),
    ],
)
def test_what_is_refused(
    part: type[BaseModel], given: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        part.model_validate(given)
    error = refused.value.errors()[0]
    assert ".".join(map(str, error["loc"][:1])) == field
    assert message in error["msg"]


def test_a_window_is_open_from_its_start_to_its_end_in_its_time_zone() -> None:
    night = Freeze.model_validate(NIGHT)
    start, end = datetime(2026, 3, 28, 21, tzinfo=UTC), datetime(2026, 3, 29, 5, tzinfo=UTC)
    assert night.open_until(start) == end  # eight hours, whatever clocks do meanwhile
    assert night.open_until(start - timedelta(seconds=1)) is None
    assert night.open_until(end - timedelta(seconds=1)) == end
    assert night.open_until(end) is None
    assert night.next_start(start) == datetime(2026, 3, 29, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moves", "running", "most"), [(3, 100, 3), ("10%", 19, 2), ("0%", 50, 0), ("100%", 7, 7)]
)
def test_a_percentage_is_rounded_up(moves: int | str, running: int, most: int) -> None:
    assert MoveBudget.model_validate({"moves": moves}).most(running) == most


def test_a_budget_with_a_schedule_counts_in_its_windows_alone() -> None:
    at_night = MoveBudget.model_validate({"moves": 0, **NIGHT})
    assert at_night.counts(datetime(2026, 7, 1, 21, tzinfo=UTC))
    assert not at_night.counts(datetime(2026, 7, 1, 12, tzinfo=UTC))
    assert MoveBudget(moves=0).counts(datetime(2026, 7, 1, 12, tzinfo=UTC))
