"""Managed clusters that are not written to for now: after a refusal, or until a write is seen.

Writing again before the watch has shown our last write could only fail.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dsf.hub.snapshot.summaries_work import SummariesWork
from dsf.kube import errors
from dsf.kube.changes import ChangeResult, Patch
from dsf.kube.kinds import MANIFEST_WORK
from dsf.runtime.backoff import Backoff


@dataclass(frozen=True, slots=True)
class UnseenWrite:
    """The resource version of a work that is known to be old, and how long that is assumed.

    `version` is empty if there was no work. The time limit is needed because a work that was
    created and deleted between two events never shows another version.
    """

    version: str
    until: float


@dataclass(frozen=True, slots=True)
class UnseenWrites:
    """The unseen writes by managed cluster; times are seconds of a monotonic clock."""

    by_cluster: Mapping[str, UnseenWrite] = field(default_factory=dict)

    def held(self, works: Mapping[str, SummariesWork], now: float) -> frozenset[str]:
        """Return the clusters whose work still has the version from before our write."""
        return frozenset(
            cluster
            for cluster, old in self.by_cluster.items()
            if now < old.until and _version(works, cluster) == old.version
        )

    def after(
        self,
        outcomes: Iterable[ChangeResult],
        works: Mapping[str, SummariesWork],
        *,
        now: float,
        seconds: float,
    ) -> "UnseenWrites":
        """Return the unseen writes after a reconcile that was planned from `works`.

        Some errors, like a conflict, also say that `works` was old.
        """
        still = self.held(works, now)
        unseen = {cluster: old for cluster, old in self.by_cluster.items() if cluster in still}
        for outcome in outcomes:
            cluster = outcome.change.namespace
            changed = outcome.error is None or is_outdated(outcome)
            if cluster and changed and outcome.change.kind == MANIFEST_WORK:
                unseen[cluster] = UnseenWrite(_version(works, cluster), now + seconds)
        return UnseenWrites(unseen)


def is_outdated(outcome: ChangeResult) -> bool:
    """Tell whether an error says that the object has changed since it was observed."""
    if isinstance(outcome.change, Patch) and isinstance(outcome.error, errors.NotFound):
        return True
    return isinstance(outcome.error, errors.Conflict | errors.AlreadyExists)


def _version(works: Mapping[str, SummariesWork], cluster: str) -> str:
    work = works.get(cluster)
    return work.version if work else ""


_NOT_ONE_CLUSTERS = (errors.TooManyRequests, errors.Unauthorized, errors.Unreachable)


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """Why a write was refused, how often in a row, and until when the cluster is left alone.

    `error` stays the first one until its type changes. The text may hold a port or a time, and a
    new text would change the status, which would start the next reconcile at once.
    """

    error: errors.KubeError
    failures: int
    until: float


@dataclass(frozen=True, slots=True)
class RefusedWrites:
    """The refused writes by managed cluster; times are seconds of a monotonic clock."""

    by_cluster: Mapping[str, RefusedWrite] = field(default_factory=dict)

    def held(self, now: float) -> frozenset[str]:
        """Return the clusters whose back-off is not over yet."""
        return frozenset(name for name, each in self.by_cluster.items() if each.until > now)

    def words(self) -> dict[str, str]:
        """Return the message for each cluster."""
        return {name: str(each.error) for name, each in self.by_cluster.items()}

    def next_at(self, now: float) -> float | None:
        """Return when the first back-off ends; None if there is none."""
        times = (each.until for each in self.by_cluster.values() if each.until > now)
        return min(times, default=None)

    def after(
        self,
        outcomes: Iterable[ChangeResult],
        clusters: Collection[str],
        *,
        now: float,
        draw: float,
        backoff: Backoff,
        left: Collection[str] = (),
    ) -> "RefusedWrites":
        """Return the refused writes after a reconcile; drops those due and not tried again.

        `left`: clusters that are tried in the next one.
        """
        refused = {
            name: each
            for name, each in self.by_cluster.items()
            if name in clusters and (each.until > now or name in left)
        }
        for outcome in outcomes:
            cluster = outcome.change.namespace
            if outcome.change.kind != MANIFEST_WORK or not cluster:
                continue
            if outcome.error is None:
                refused.pop(cluster, None)
            elif is_clusters_own(outcome):
                before = self.by_cluster.get(cluster)
                refused[cluster] = _again(before, outcome.error, now, draw, backoff)
        return RefusedWrites(refused)


def is_clusters_own(outcome: ChangeResult) -> bool:
    """Tell whether an error concerns one cluster, and not the API server or our credentials."""
    if (
        outcome.error is None
        or isinstance(outcome.error, _NOT_ONE_CLUSTERS)
        or is_outdated(outcome)
    ):
        return False
    return outcome.change.kind == MANIFEST_WORK


def _again(
    before: RefusedWrite | None, error: errors.KubeError, now: float, draw: float, backoff: Backoff
) -> RefusedWrite:
    failures = (before.failures if before else 0) + 1
    same = before is not None and type(before.error) is type(error)
    first = before.error if before and same else error
    return RefusedWrite(first, failures, now + backoff.delay(failures, draw))
