"""What becomes of the last good scores while rounds fail: `scoring.onFailure`, by the clock alone.

The object itself says where it stands, by `validUntil` and by the reason of its condition
`Published`, so that an agent that was restarted goes on where the one before it was:

Published, EntriesCut  scores of a good round; they stay as they are until `validUntil`
Held                   policy Hold: expired scores whose validity was extended, once
FallbackValue          policy Value: every entry has the declared value, renewed while rounds fail
Expired                the scores are over, until a round succeeds
NoScores               there never were any
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dsf.api.conditions import Condition, find
from dsf.api.crd.score_rules import OnFailure
from dsf.api.times import rfc3339
from dsf.kube.port import Object

PUBLISHED = "Published"
HELD, REPLACED, EXPIRED, NO_SCORES = "Held", "FallbackValue", "Expired", "NoScores"

EXPIRE = OnFailure(policy="Expire")

MIN_VALIDITY = timedelta(seconds=90)
MAX_INTERVAL = 604_800

LEAD = timedelta(seconds=5)
"""Scores to be held are extended this long before they expire, lest they expire for a moment."""


def validity(interval_seconds: int) -> timedelta:
    """Return how long scores are valid: three intervals, at least 90 s."""
    return max(timedelta(seconds=3 * min(interval_seconds, MAX_INTERVAL)), MIN_VALIDITY)


@dataclass(frozen=True, slots=True)
class ExpiryDecision:
    """Changes of an object's status, and when to look again; `condition` None leaves it as it is.

    `again` is None where only a round can change something.
    """

    changes: Object = field(default_factory=dict)
    condition: Condition | None = None
    again: datetime | None = None


def decide_expiry(
    status: Mapping[str, Any], rule: OnFailure, *, now: datetime, valid_for: timedelta
) -> ExpiryDecision:
    """Return what the scores of a status come to after a failed round.

    `valid_for` is how long scores of a good round, and replaced ones, are valid.
    """
    reason = str((find(status.get("conditions") or [], PUBLISHED) or {}).get("reason", ""))
    if status.get("scores") is None:
        return ExpiryDecision(condition=Condition(PUBLISHED, "False", NO_SCORES, _NEVER))
    until = read_time(status.get("validUntil"))
    hold = timedelta(seconds=rule.hold_seconds or 0)
    if rule.policy == "Value" and (reason in _OVER or until is None or until <= now):
        return _replaced(status, rule, now=now, valid_for=valid_for)
    if until is None or reason == EXPIRED or (reason in _OVER and not _goes_on(reason, rule)):
        return _expired(until, now)
    longest = now + valid_for + (hold if reason == HELD else timedelta())
    if until > longest:  # the clock was set back
        return ExpiryDecision({"validUntil": rfc3339(longest)}, again=longest)
    if rule.policy == "Hold" and reason != HELD:
        return _held(until, hold, now)
    return ExpiryDecision(again=until) if now < until else _expired(until, now)


def read_time(text: object) -> datetime | None:
    """Return an aware time of a status; None where it is missing or unreadable."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time if time.tzinfo else None


_NEVER = "No round has succeeded yet."
_OVER = {HELD, REPLACED, EXPIRED}


def _goes_on(reason: str, rule: OnFailure) -> bool:
    return (reason, rule.policy) in {(HELD, "Hold"), (REPLACED, "Value")}


def _held(until: datetime, hold: timedelta, now: datetime) -> ExpiryDecision:
    end = until + hold
    if now < until - LEAD:
        return ExpiryDecision(again=until - LEAD)
    if now >= end:
        return _expired(until, now)
    message = f"The last good scores expired at {rfc3339(until)} and are held until {rfc3339(end)}."
    condition = Condition(PUBLISHED, "True", HELD, message)
    return ExpiryDecision({"validUntil": rfc3339(end)}, condition, end)


def _replaced(
    status: Mapping[str, Any], rule: OnFailure, *, now: datetime, valid_for: timedelta
) -> ExpiryDecision:
    scores = [{"name": entry["name"], "value": rule.value} for entry in status["scores"]]
    message = f"The last good scores have expired: every entry has the value {rule.value}."
    condition = Condition(PUBLISHED, "True", REPLACED, message)
    until = read_time(status.get("validUntil"))
    changes: Object = {} if scores == status["scores"] else {"scores": scores}
    if changes or until is None or not valid_for / 2 < until - now <= valid_for:
        until = now + valid_for
        changes["validUntil"] = rfc3339(until)
    return ExpiryDecision(changes, condition, until - valid_for / 2)


def _expired(until: datetime | None, now: datetime) -> ExpiryDecision:
    """Scores without an end, or that were held or replaced and are no longer to be, end now."""
    message = "The last good scores have expired, and no round has succeeded since."
    condition = Condition(PUBLISHED, "False", EXPIRED, message)
    changes = {"validUntil": rfc3339(now)} if until is None or until > now else {}
    return ExpiryDecision(changes, condition)
