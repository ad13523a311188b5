"""Writes that the watch has not shown yet: writing again from the old copy could only fail."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dsf.hub.snapshot.summaries_work import SummariesWork
from dsf.kube.changes import ChangeResult, Patch
from dsf.kube.errors import AlreadyExists, Conflict, NotFound
from dsf.kube.kinds import MANIFEST_WORK


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
        found = {cluster: old for cluster, old in self.by_cluster.items() if cluster in still}
        for outcome in outcomes:
            cluster = outcome.change.namespace
            changed = outcome.error is None or is_outdated(outcome)
            if cluster and changed and outcome.change.kind == MANIFEST_WORK:
                found[cluster] = UnseenWrite(_version(works, cluster), now + seconds)
        return UnseenWrites(found)


def is_outdated(outcome: ChangeResult) -> bool:
    """Tell whether an error says that the object has changed since it was observed."""
    if isinstance(outcome.change, Patch) and isinstance(outcome.error, NotFound):
        return True
    return isinstance(outcome.error, Conflict | AlreadyExists)


def _version(works: Mapping[str, SummariesWork], cluster: str) -> str:
    work = works.get(cluster)
    return work.version if work else ""
