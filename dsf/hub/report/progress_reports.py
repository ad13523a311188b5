"""When statuses are written that say only how far things have come.

Nothing is distributed from them, and each is out of date after the next write or the next report of
an agent. So they are not written beside the works that they are about, and not more often than
people read them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from dsf.kube.changes import Change, ChangeResult, Patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK

_PROGRESS = frozenset({"clusters", "conditions", "desiredClusters", "failingClusters", "scorers"})
"""Fields of a status that change while the object and what is known of its API stay."""
LONGEST_WAITS = 6
"""Reports that a status waits for at most, however often works are written meanwhile."""


def is_progress(change: Change) -> bool:
    """Tell whether a status answers no edit and records nothing: it says how far things are."""
    return (
        isinstance(change, Patch)
        and change.kind in (DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG)
        and change.subresource == "status"
        and change.body["status"].keys() <= _PROGRESS
    )


@dataclass(frozen=True, slots=True)
class ProgressReports:
    """When works and statuses of progress were written; times are seconds of a monotonic clock.

    `waiting_since` is when the first status was planned that is not written yet.
    """

    works_at: float = -math.inf
    written_at: float = -math.inf
    waiting_since: float | None = None

    def due_at(self, changes: Iterable[Change], *, unseen: bool, seconds: float) -> float:
        """Return when statuses of progress may be written, `seconds` after the last ones.

        Not beside works, and until the watch has shown these (`unseen`) only `seconds` later.
        Once it has, what they led to is told after half of `seconds`.
        """
        longest = LONGEST_WAITS * seconds
        latest = math.inf if self.waiting_since is None else self.waiting_since + longest
        if any(change.kind == MANIFEST_WORK for change in changes):
            return latest
        if unseen:
            return min(latest, self.works_at + seconds)
        settled = self.works_at + seconds / 2 if self.works_at > self.written_at else math.inf
        return min(latest, self.written_at + seconds, settled)

    def after(self, outcomes: Iterable[ChangeResult], *, waits: bool, now: float) -> Self:
        """Return the reports after a reconcile; `waits` tells whether a status was not written."""
        done = [each.change for each in outcomes if each.error is None]
        since = now if self.waiting_since is None else self.waiting_since
        reports = replace(self, waiting_since=since if waits else None)
        if any(change.kind == MANIFEST_WORK for change in done):
            reports = replace(reports, works_at=now)
        if any(map(is_progress, done)):
            reports = replace(reports, written_at=now)
        return reports
