"""When scores expire, and what `scoring.onFailure` then makes of them.

The scores of a good round are valid for three intervals, at least 90 s. If rounds still fail when
that time is over, `scoring.onFailure` decides: `policy_in_force` for the object on the hub and for
the metrics alike.

The object itself carries the state, in `validUntil` and in the reason of its condition `Published`,
so a restarted agent continues where the previous one stopped:

Published, EntriesCut  scores of a good round, unchanged until `validUntil`
Held                   policy Hold: expired scores whose validity was extended, once
FallbackValue          policy Value: every entry has the declared value, renewed while rounds fail
Expired                the scores have expired, until a round succeeds
DefaultScore           there was nothing to score, or no round has ever succeeded: every entry has
                       the default score, renewed while rounds fail
NoFiniteScores         the last round's scores were all NaN or infinite: there are no entries
NoScores               no round has ever succeeded
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from dsf.api.conditions import Condition, find
from dsf.api.crd.score_rules import OnFailure
from dsf.api.times import read_time, rfc3339
from dsf.kube.port import Object

PUBLISHED = "Published"
HELD, REPLACED, EXPIRED, NO_SCORES = "Held", "FallbackValue", "Expired", "NoScores"
DEFAULT = "DefaultScore"
NOT_FINITE = "NoFiniteScores"

EXPIRE = OnFailure(policy="Expire")

VALID_INTERVALS = 3
"""Two rounds may fail or be late before scores expire."""

MIN_VALIDITY = timedelta(seconds=90)
"""Time for a restart of the agent, whatever the interval."""

MAX_INTERVAL = 604_800
"""Seconds (a week): longer intervals do not extend the validity further."""

LEAD = timedelta(seconds=5)
"""Scores to be held are extended this long before they expire, so that they never expire."""

Policy = Literal["Hold", "Value", "Expire"]


def validity(interval_seconds: int) -> timedelta:
    """Return how long scores are valid: three intervals, at least 90 s."""
    return max(
        timedelta(seconds=VALID_INTERVALS * min(interval_seconds, MAX_INTERVAL)), MIN_VALIDITY
    )


def outlived(ended: datetime, valid_for: timedelta, now: datetime) -> bool:
    """Tell whether the scores of a round that ended at `ended` are no longer valid."""
    return ended + valid_for <= now


def policy_in_force(rule: OnFailure, seconds: float) -> Policy | None:
    """Return the policy in force `seconds` after scores have expired; None before that."""
    if seconds < 0:
        return None
    if rule.policy == "Hold" and seconds < (rule.hold_seconds or 0):
        return "Hold"
    return "Value" if rule.policy == "Value" else "Expire"


def is_valid(status: Mapping[str, Any], now: datetime) -> bool:
    """Tell whether the scores of a status are valid; not where `validUntil` is unreadable."""
    until = read_time(status.get("validUntil"))
    return until is not None and now < until


def needs_renewal(status: Mapping[str, Any], now: datetime, valid_for: timedelta) -> bool:
    """Tell whether half of the validity is spent, or `validUntil` is missing or too late."""
    until = read_time(status.get("validUntil"))
    return until is None or not valid_for / 2 < until - now <= valid_for


@dataclass(frozen=True, slots=True)
class ExpiryDecision:
    """Changes of an object's status, and when to decide again.

    `condition` None leaves the condition as it is; `again` None means that only a round can change
    something.
    """

    changes: Object = field(default_factory=dict)
    condition: Condition | None = None
    again: datetime | None = None


def decide_expiry(
    status: Mapping[str, Any],
    rule: OnFailure,
    *,
    now: datetime,
    valid_for: timedelta,
    default: Sequence[Mapping[str, Any]] = (),
) -> ExpiryDecision:
    """Return what becomes of the scores of a status after a failed round.

    `valid_for` is the validity of scores of a good round, and of replaced ones. `default` are the
    entries of the default score, if one is declared.
    """
    reason = str((find(status.get("conditions") or [], PUBLISHED) or {}).get("reason", ""))
    never = status.get("scores") is None and reason != NOT_FINITE
    if default and (never or reason == DEFAULT):
        condition = Condition(PUBLISHED, "True", DEFAULT, _DEFAULT.format(default[0]["value"]))
        return _standing(status, [*default], condition, now=now, valid_for=valid_for)
    return _after_good_scores(status, rule, reason, now=now, valid_for=valid_for)


def _after_good_scores(
    status: Mapping[str, Any], rule: OnFailure, reason: str, *, now: datetime, valid_for: timedelta
) -> ExpiryDecision:
    """Return what becomes of the last good scores; `reason` is that of the condition Published."""
    never = status.get("scores") is None and reason != NOT_FINITE
    if status.get("scores") is None or reason == NOT_FINITE:  # nothing to hold or replace
        unscored = Condition(PUBLISHED, "False", NO_SCORES, _NEVER)
        return ExpiryDecision(condition=unscored if never else None)
    until = read_time(status.get("validUntil"))
    policy = policy_in_force(rule, _seconds_expired(until, reason, rule, now))
    if policy == "Value":
        return _replaced(status, rule, now=now, valid_for=valid_for)
    if policy == "Expire" or until is None:
        return _expired(until, now)
    held = _hold(rule) if reason == HELD else timedelta()
    latest = now + valid_for + held
    if until > latest:  # the clock was set back
        return ExpiryDecision({"validUntil": rfc3339(latest)}, again=latest)
    if rule.policy == "Hold" and reason != HELD:
        return _held(until, _hold(rule), now)
    return ExpiryDecision(again=until)


_NEVER = "No round has succeeded yet."
_DEFAULT = "Until a round has results, every entry has the default score {}."
_NOT_GOOD = {HELD, REPLACED, EXPIRED}


def _seconds_expired(until: datetime | None, reason: str, rule: OnFailure, now: datetime) -> float:
    """Return the seconds since the scores of the last good round expired; negative before.

    Infinite where that moment is unknown, or where the scores expired under another rule.
    """
    holding = reason == HELD and rule.policy == "Hold"
    if until is None or (reason in _NOT_GOOD and not holding):
        return math.inf
    good_until = until - _hold(rule) if holding else until
    return (now - good_until).total_seconds()


def _hold(rule: OnFailure) -> timedelta:
    return timedelta(seconds=rule.hold_seconds or 0)


def _held(until: datetime, hold: timedelta, now: datetime) -> ExpiryDecision:
    if now < until - LEAD:
        return ExpiryDecision(again=until - LEAD)
    end = until + hold
    message = f"The last good scores expired at {rfc3339(until)} and are held until {rfc3339(end)}."
    condition = Condition(PUBLISHED, "True", HELD, message)
    return ExpiryDecision({"validUntil": rfc3339(end)}, condition, end)


def _replaced(
    status: Mapping[str, Any], rule: OnFailure, *, now: datetime, valid_for: timedelta
) -> ExpiryDecision:
    scores = [{"name": entry["name"], "value": rule.value} for entry in status["scores"]]
    message = f"The last good scores have expired: every entry has the value {rule.value}."
    condition = Condition(PUBLISHED, "True", REPLACED, message)
    return _standing(status, scores, condition, now=now, valid_for=valid_for)


def _standing(
    status: Mapping[str, Any],
    scores: Sequence[Mapping[str, Any]],
    condition: Condition,
    *,
    now: datetime,
    valid_for: timedelta,
) -> ExpiryDecision:
    """Return the decision that scores stand in for those of rounds, renewed while rounds fail."""
    changes: Object = {} if scores == status.get("scores") else {"scores": scores}
    until = read_time(status.get("validUntil"))
    if changes or until is None or needs_renewal(status, now, valid_for):
        until = now + valid_for
        changes["validUntil"] = rfc3339(until)
    return ExpiryDecision(changes, condition, until - valid_for / 2)


def _expired(until: datetime | None, now: datetime) -> ExpiryDecision:
    """Scores that are over although `validUntil` is not reached end now."""
    message = "The last good scores have expired, and no round has succeeded since."
    condition = Condition(PUBLISHED, "False", EXPIRED, message)
    changes = {"validUntil": rfc3339(now)} if until is None or until > now else {}
    return ExpiryDecision(changes, condition)
