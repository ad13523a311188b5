"""How long the agent waits before it writes a score again that the hub did not accept.

Pauses are short for failures that pass: scores are renewed after half of at least 90 s, so a short
outage of the hub then costs none of them. They are long for failures that only people can end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from dsf.agent.failure import Failure
from dsf.runtime.backoff import Backoff

PASSING = Backoff(1.0, 30.0)
"""From 1 s to 30 s: several attempts within the 45 s that a renewed score has left at least."""

LASTING = Backoff(1.0, 300.0)
"""From 1 s to 5 min, so that a corrected cause has its effect soon."""


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
    passing: Backoff = PASSING
    lasting: Backoff = LASTING
    _by_score: dict[str, WritePause] = field(default_factory=dict)
    _of_all: WritePause | None = None

    def current(self, score_name: str, now: float) -> WritePause | None:
        """Return the pause of a score; None if it may be written."""
        pauses = (self._by_score.get(score_name), self._of_all)
        current = [pause for pause in pauses if pause and now < pause.until]
        return max(current, key=lambda pause: pause.until, default=None)

    def failed(self, score_name: str, failure: Failure, now: float, *, lasting: bool) -> WritePause:
        """Start the next, longer pause of a score; only people can end a `lasting` failure."""
        before = self._by_score.get(score_name)
        failures = before.failures + 1 if before else 1
        backoff = self.lasting if lasting else self.passing
        until = now + backoff.delay(failures, self.draw())
        pause = self._by_score[score_name] = WritePause(failure, until, failures)
        return pause

    def asked(self, failure: Failure, until: float) -> WritePause:
        """Start a pause of all scores, because the hub asked for it."""
        self._of_all = WritePause(failure, until, 1)
        return self._of_all

    def failing(self, reason: str) -> Failure | None:
        """Return the failure of any score whose last attempt failed for a reason; else None."""
        found = (one.failure for one in self._by_score.values() if one.failure.reason == reason)
        return next(found, None)

    def forget(self, score_name: str) -> None:
        """End the pause of a score that was written or removed."""
        self._by_score.pop(score_name, None)
