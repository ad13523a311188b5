"""How long a score is left alone that the hub did not take: pure, time and chance are passed in.

Short pauses, since scores are renewed when half of at least 90 s is spent, and a hub that was away
for a moment should cost none of them; long ones where nothing helps but that somebody changes
something.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from dsf.agent.failure import Failure
from dsf.runtime.backoff import Backoff

PASSING = Backoff(1.0, 30.0)
LASTING = Backoff(1.0, 300.0)


@dataclass(frozen=True, slots=True)
class WritePause:
    """Why a score is left alone, until when, and after how many failures in a row."""

    failure: Failure
    until: float
    failures: int


@dataclass(slots=True)
class WritePauses:
    """The pauses by score name; times are seconds of any steady clock, `draw` is in [0, 1)."""

    draw: Callable[[], float]
    passing: Backoff = PASSING
    lasting: Backoff = LASTING
    _by_score: dict[str, WritePause] = field(default_factory=dict)
    _of_all: WritePause | None = None

    def current(self, score_name: str, now: float) -> WritePause | None:
        """Return the pause that a score has now, None where it may be written."""
        pauses = (self._by_score.get(score_name), self._of_all)
        current = [pause for pause in pauses if pause and now < pause.until]
        return max(current, key=lambda pause: pause.until, default=None)

    def failed(self, score_name: str, failure: Failure, now: float, *, lasting: bool) -> WritePause:
        """Begin the next, longer pause of a score; `lasting` failures end by people only."""
        before = self._by_score.get(score_name)
        failures = before.failures + 1 if before else 1
        backoff = self.lasting if lasting else self.passing
        until = now + backoff.delay(failures, self.draw())
        pause = self._by_score[score_name] = WritePause(failure, until, failures)
        return pause

    def asked(self, failure: Failure, until: float) -> WritePause:
        """Begin the pause of all scores that the hub asked for."""
        self._of_all = WritePause(failure, until, 1)
        return self._of_all

    def failing(self, reason: str) -> Failure | None:
        """Return the failure of a score whose last attempt ended for a reason, None without one."""
        found = (one.failure for one in self._by_score.values() if one.failure.reason == reason)
        return next(found, None)

    def forget(self, score_name: str) -> None:
        """End the pauses of a score that was written, or is gone."""
        self._by_score.pop(score_name, None)
