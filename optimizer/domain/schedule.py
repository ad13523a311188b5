"""Schedules in cron syntax, in a time zone: when they start, also where clocks are set.

Five fields as cronsim reads them, or a macro of a CronJob. Where clocks are set it does what
Debian's cron does: with a minute and an hour that do not begin with `*`, a time that is skipped
starts when the clock has jumped, and one that comes twice starts the first time. With a `*` in one
of them a schedule goes by what clocks show: skipped times do not start, repeated ones start twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

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
