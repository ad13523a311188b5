"""Schedules in cron syntax, in a time zone: when they start, also where clocks are set.

Syntax as of a CronJob: five fields (minute, hour, day of month, month, day of week) of `*`,
numbers, names, ranges, lists and steps, or a macro such as `@daily`. If neither day field begins
with `*`, a day that either of them has is meant. Source: crontab(5) of Debian.

Where clocks are set, as Debian's cron: with a minute and an hour that do not begin with `*`, a time
that is skipped starts when the clock has jumped, and one that comes twice starts the first time.
With a `*` in one of them a schedule goes by what clocks show: skipped times do not start, repeated
ones start twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import product
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_MOST_DAYS = 8 * 366
"""Days between two starts at most: 29 February is missing in 1900 and 2100."""

_CACHED_DAYS = 256


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed schedule: the values of each field, and how its days and its clock are meant.

    `either_day`: a day that one of the two day fields has is enough. `by_clock`: see the module.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    by_clock: bool

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Return the schedule of a text; ValueError says what is wrong with it."""
        fields = _MACROS.get(text.strip().lower(), text).split()
        if len(fields) != len(_FIELDS):
            raise ValueError(
                "needs five fields (minute, hour, day of month, month, day of week) or a macro such"
                f" as @daily; it has {len(fields)}"
            )
        minutes, hours, days, months, weekdays = (
            frozenset(_values(field, *known)) for field, known in zip(fields, _FIELDS, strict=True)
        )
        stars = [field.startswith("*") for field in fields]
        found = cls(
            minutes,
            hours,
            days,
            months,
            frozenset(day % 7 for day in weekdays),
            either_day=not stars[2] and not stars[4],
            by_clock=stars[0] or stars[1],
        )
        leap_year = (date(2024, 1, 1) + timedelta(days=number) for number in range(366))
        if not found.either_day and not any(
            day.month in months and day.day in days for day in leap_year
        ):
            raise ValueError("never starts: no such month has such a day")
        return found

    def last_start(self, now: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the latest start at or before an aware time, in UTC; None if it is too long ago.

        That is more than eight years.
        """
        for day in self._days_from(now, zone, -1):
            starts = _starts(self, day, zone)
            found = bisect_right(starts, now)
            if found:
                return starts[found - 1]
        return None

    def next_start(self, now: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the first start after an aware time, in UTC; None if it is too far away."""
        for day in self._days_from(now, zone, 1):
            starts = _starts(self, day, zone)
            found = bisect_right(starts, now)
            if found < len(starts):
                return starts[found]
        return None

    def _days_from(self, now: datetime, zone: ZoneInfo, step: int) -> Iterator[date]:
        """Yield the days that are meant, from the one of an aware time on; step is 1 or -1.

        The day before the first one is among them, because a skipped midnight ends in the next day.
        """
        first = now.astimezone(zone).date() - timedelta(days=step)
        for number in range(_MOST_DAYS):
            day = first + timedelta(days=step * number)
            if self._has(day):
                yield day

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("name one such as Europe/Berlin or Etc/UTC") from None


@lru_cache(_CACHED_DAYS)
def _starts(schedule: Schedule, day: date, zone: ZoneInfo) -> list[datetime]:
    """Return the starts of a local day in UTC, ascending."""
    found = set[datetime]()
    for hour, minute in product(sorted(schedule.hours), sorted(schedule.minutes)):
        local = datetime.combine(day, time(hour, minute), zone)
        moments = [local.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
        exists = moments[0].astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None)
        if exists:
            found.update(moments if schedule.by_clock else moments[:1])
        elif not schedule.by_clock:
            found.add(_end_of_jump(min(moments), max(moments), zone))
    return sorted(found)


def _end_of_jump(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment between two at which the clock of a zone jumps forward, to the minute."""
    minutes = range(int((after - before).total_seconds() // 60) + 1)
    offset = before.astimezone(zone).utcoffset()
    ahead = bisect_left(
        minutes,
        True,
        key=lambda n: (before + timedelta(minutes=n)).astimezone(zone).utcoffset() != offset,
    )
    return before + timedelta(minutes=ahead)


def _values(field: str, what: str, least: int, most: int, names: tuple[str, ...]) -> set[int]:
    """Return the values of a field; ValueError names the part that is wrong."""
    found = set[int]()
    for part in field.lower().split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = least, min(most, 6) if names is _DAYS else most
        else:
            start = _number(first, names, least)
            end = _number(last, names, least) if dash else (most if slash else start)
        by = int(step) if step.isascii() and step.isdigit() else 0
        if not least <= start <= end <= most or (slash and not by):
            allowed = f"{least} to {most}" + (f" or {names[0]} to {names[-1]}" if names else "")
            raise ValueError(f"{part!r} is no {what}: *, {allowed}, 1-5, or any with /step")
        found.update(range(start, end + 1, by or 1))
    return found


def _number(text: str, names: tuple[str, ...], first: int) -> int:
    """Return the number of a value or of its name; -1 if it is neither."""
    if text in names:
        return names.index(text) + first
    return int(text) if text.isascii() and text.isdigit() else -1
