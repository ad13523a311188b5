"""Whether the agent may write a score: it is its publisher, and no pause after a failure lasts.

The agents of one installation take turns through its Lease (`dsf.agent.publish.addon_lease`). Two
installations that were given the same cluster name differ in the Lease's uid, or in the host name
where there is no Lease. Each published score carries that identity in its condition `Publisher`.
An expired score belongs to nobody.

The hub may refuse a write. Pauses are short for failures that pass: scores are renewed after half
of at least 90 s, so a short outage of the hub then costs none of them. They are long for failures
that only people can end. Where the hub does not answer, the pause is that of all scores: one write
finds out for all of them whether it is back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.score.expiry import is_valid
from dsf.api.conditions import Condition, find
from dsf.runtime.backoff import Backoff

PUBLISHER = "Publisher"
ANOTHER_AGENT = "AnotherAgent"


@dataclass(slots=True)
class PublisherIdentity:
    """The identity of this agent's installation, and the agent that publishes instead, if any.

    All agents of one installation have the same `identity`. While it is empty (unknown), every
    score with our labels counts as ours. It changes if the Lease is created again; `former` has the
    previous ones. `rival` is the holder of the Lease, empty if this agent may publish.
    """

    identity: str = ""
    rival: str = ""
    former: frozenset[str] = frozenset()

    def take(self, identity: str) -> None:
        """Set the identity; scores published under the previous one still belong to this agent."""
        self.former |= {self.identity} - {identity}
        self.identity = identity

    @property
    def condition(self) -> tuple[Condition, ...]:
        """The condition that names the publisher; none while the identity is unknown."""
        if not self.identity:
            return ()
        return (Condition(PUBLISHER, "True", "Agent", self.identity),)

    def standby_failure(self) -> Failure | None:
        """Return why this agent publishes nothing at all; None if it may publish."""
        if not self.rival:
            return None
        message = (
            f"another agent of this installation ({self.rival}) publishes for this managed cluster,"
            " and this one stands by: run one replica"
        )
        return Failure("publish", ANOTHER_AGENT, message)

    def foreign_failure(self, obj: Mapping[str, Any], now: datetime) -> Failure | None:
        """Return why an object must not be written: another installation keeps it valid."""
        status, metadata = obj.get("status") or {}, obj["metadata"]
        publisher = find(status.get("conditions") or [], PUBLISHER)
        theirs = str(publisher.get("message") or "") if publisher else ""
        ours = theirs in {"", self.identity, *self.former}
        if not self.identity or ours or not is_valid(status, now):
            return None
        kind = obj.get("kind", "AddOnPlacementScore")
        name = f"{kind} {metadata['namespace']}/{metadata['name']}"
        message = (
            f"{name} is published by the agent of another installation ({theirs}; this one is"
            f" {self.identity}): give each managed cluster's agent its own --cluster-name. If that"
            " agent is gone, this one takes it over when it expires,"
            " or as soon as you delete it"
        )
        return Failure("publish", ANOTHER_AGENT, message)


PASSING = Backoff(1.0, 30.0)
"""From 1 s to 30 s: several attempts within the 45 s that a renewed score has left at least."""

LASTING = Backoff(1.0, 300.0)
"""From 1 s to 5 min, so that a corrected cause has its effect soon."""

UNANSWERED = Backoff(1.0, 5.0)
"""From 1 s to 5 s between calls of an agent to a hub that does not answer."""
ANSWER_SECONDS = 1.0
"""How long the other scores wait for the answer to such a call."""


@dataclass(frozen=True, slots=True)
class WritePause:
    """Why a score is not written, until when, and after how many failures in a row."""

    failure: Failure
    until: float
    failures: int


@dataclass(slots=True)
class WritePauses:
    """Pauses by score name; times are seconds of a monotonic clock, `draw` returns [0, 1)."""

    draw: Callable[[], float]
    silent: Backoff = UNANSWERED
    _by_score: dict[str, WritePause] = field(default_factory=dict)
    _of_all: WritePause | None = None
    _unanswered: WritePause | None = None
    _unheard: set[str] = field(default_factory=set)
    _doubted: set[str] = field(default_factory=set)

    def current(self, score_name: str, now: float) -> WritePause | None:
        """Return the pause of a score; None if it may be written."""
        pauses = (self._by_score.get(score_name), self._of_all, self._unanswered)
        current = [pause for pause in pauses if pause and now < pause.until]
        return max(current, key=lambda pause: pause.until, default=None)

    def failed(self, score_name: str, failure: Failure, now: float, *, lasting: bool) -> WritePause:
        """Start the next, longer pause of a score; only people can end a `lasting` failure."""
        before = self._by_score.get(score_name)
        failures = before.failures + 1 if before else 1
        backoff = LASTING if lasting else PASSING
        until = now + backoff.delay(failures, self.draw())
        pause = self._by_score[score_name] = WritePause(failure, until, failures)
        return pause

    def asked(self, failure: Failure, until: float) -> WritePause:
        """Start a pause of all scores, because the hub asked for it."""
        self._of_all = WritePause(failure, until, 1)
        return self._of_all

    def unanswered(self, score_name: str, failure: Failure, now: float) -> WritePause:
        """Start the next, longer pause of all scores, because the hub did not answer.

        If it has answered others since, the pause is that of the score alone.
        """
        if score_name in self._doubted:
            return self.failed(score_name, failure, now, lasting=False)
        self._unheard.add(score_name)
        failures = self._unanswered.failures + 1 if self._unanswered else 1
        until = now + self.silent.delay(failures, self.draw())
        self._unanswered = WritePause(failure, until, failures)
        return self._unanswered

    def trying(self, now: float) -> None:
        """Let the other scores wait while one finds out whether a hub is back."""
        if self._unanswered:
            self._unanswered = replace(self._unanswered, until=now + ANSWER_SECONDS)

    def answered(self) -> None:
        """End the pause for a hub that did not answer."""
        self._doubted |= self._unheard
        self._unheard.clear()
        self._unanswered = None

    def failing(self, reason: str) -> Failure | None:
        """Return the failure of any score whose last attempt failed for a reason; else None."""
        found = (one.failure for one in self._by_score.values() if one.failure.reason == reason)
        return next(found, None)

    def forget(self, score_name: str) -> None:
        """End the pause of a score that was written or removed."""
        self._by_score.pop(score_name, None)
        self._unheard.discard(score_name)
        self._doubted.discard(score_name)
