"""Windows of time that open again and again, as Karpenter's disruption budgets have them.

A schedule has the five fields of cron as cronsim reads them, or is a macro of a CronJob. Where
clocks are set it does what Debian's cron does: with a minute and an hour that do not begin with
`*`, a time that is skipped starts when the clock has jumped, and one that comes twice starts the
first time. With a `*` in one of them a schedule goes by what clocks show: skipped times do not
start, repeated ones start twice.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, model_validator

from dsf.api.crd.structural_schema import rule, rules
from dsf.api.untrusted_text import quoted
from optimizer.wire.base import RequestPart

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = 5
_FORM = (
    "write minute, hour, day of month, month and day of week, such as 0 22 * * mon-fri, or a macro"
    " such as @daily"
)
_REPEATED = timedelta(hours=3)
"""The longest time that clocks show twice; cronsim begins at the first of two."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something starts again and again; `expression`: what `five_fields` returns."""

    expression: str
    zone: ZoneInfo

    def last_start(self, now: datetime) -> datetime | None:
        """Return the latest start at or before an aware time, in UTC; None: in fifty years none."""
        starts = self._starts(now + _REPEATED + timedelta(microseconds=1), reverse=True)
        return next((start for start in starts if start <= now), None)

    def next_start(self, now: datetime) -> datetime | None:
        """Return the first start after an aware time, in UTC; None: in fifty years none."""
        return next((start for start in self._starts(now) if start > now), None)

    def _starts(self, begin: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        for start in CronSim(self.expression, begin.astimezone(self.zone), reverse=reverse):
            yield start.astimezone(UTC)


def five_fields(text: str) -> str:
    """Return the five fields of a schedule or macro; ValueError says what is wrong with it."""
    fields = _MACROS.get(text.strip().lower(), text)
    if len(fields.split()) != _FIELDS:
        raise ValueError(f"it does not have {_FIELDS} fields; {_FORM}")
    try:
        CronSim(fields, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"{str(error).lower()}; {_FORM}") from None
    return fields


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("name one such as Europe/Berlin or Etc/UTC") from None


_DURATION = r"^(0*[1-9][0-9]{0,4}h([0-5]?[0-9]m)?|0*[1-9][0-9]{0,5}m)$"
_MOST_CHARACTERS = 120


def _read_by(parse: Callable[[str], object], what: str) -> BeforeValidator:
    """Return a validator that says better than a pattern what is wrong with a text."""

    def validated(value: Any) -> Any:
        if isinstance(value, str) and len(value) <= _MOST_CHARACTERS:
            try:
                parse(value)
            except ValueError as error:
                raise ValueError(f"{quoted(value, 60)} is no {what}: {error}") from None
        return value

    return BeforeValidator(validated)


def _duration(text: str) -> timedelta:
    if not re.fullmatch(_DURATION, text):
        raise ValueError("write hours and minutes, such as 8h, 90m or 1h30m")
    hours, _, minutes = text.rpartition("h")
    return timedelta(hours=int(hours or 0), minutes=int(minutes.rstrip("m") or 0))


Cron = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_MOST_CHARACTERS,
        pattern=r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
        r"|[0-9A-Za-z*,/-]+( +[0-9A-Za-z*,/-]+){4})$",
        description="When it starts, in cron syntax: five fields, or a macro such as @daily.",
    ),
    _read_by(five_fields, "schedule"),
]
Duration = Annotated[
    str,
    Field(
        max_length=20,
        pattern=_DURATION,
        description="How long it lasts from each start, such as 8h, 90m or 1h30m.",
    ),
    _read_by(_duration, "duration"),
]
TimeZone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$",
        description="IANA time zone of the schedule, such as Europe/Berlin. A start that a change"
        " of clocks skips comes right after it, one that comes twice counts the first time.",
    ),
    _read_by(time_zone, "IANA time zone"),
]


def _aware(text: str) -> None:
    form = "write a time with its offset from UTC, such as 2026-11-28T06:00:00+01:00"
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(form) from None
    if read.tzinfo is None:
        raise ValueError(f"it has no time zone; {form}")


Time = Annotated[AwareDatetime, _read_by(_aware, "time that can be used")]


class Scheduled(RequestPart):
    """What has a schedule, in a time zone."""

    time_zone: TimeZone = "Etc/UTC"

    def starts_of(self, text: str) -> Schedule:
        """Return the starts of one of its schedules."""
        return Schedule(five_fields(text), ZoneInfo(self.time_zone))


_NO_SCHEDULE = "timeZone: it is that of a schedule; state schedule and duration, or leave it out"


class OptionalTimeWindow(Scheduled):
    """A window of time that opens again and again, or no window."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.schedule) == has(self.duration)", "state schedule and duration, or none"
            ),
            rule("!has(self.timeZone) || has(self.schedule)", _NO_SCHEDULE),
        )
    )

    schedule: Cron | None = None
    duration: Duration | None = None

    @model_validator(mode="after")
    def _whole_window(self) -> Self:
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("schedule and duration: state both or none")
        if self.schedule is None and "time_zone" in self.model_fields_set:
            raise ValueError(_NO_SCHEDULE)
        return self

    def window_end(self, now: datetime) -> datetime | None:
        """Return when the window ends that an aware time is in; None if it is in none."""
        if self.schedule is None or self.duration is None:
            return None
        start = self.starts_of(self.schedule).last_start(now)
        return _open_until(start, self.duration, now)


class TimeWindow(Scheduled):
    """A window of time that opens again and again."""

    schedule: Cron
    duration: Duration

    def open_until(self, now: datetime) -> datetime | None:
        """Return when the window ends that an aware time is in; None if it is in none."""
        start = self.starts_of(self.schedule).last_start(now)
        return _open_until(start, self.duration, now)

    def next_start(self, now: datetime) -> datetime | None:
        """Return when the window opens next after an aware time."""
        return self.starts_of(self.schedule).next_start(now)


def _open_until(start: datetime | None, duration: str, now: datetime) -> datetime | None:
    until = start + _duration(duration) if start is not None else now
    return until if now < until else None
