"""Reads the scores of a fleet, page by page. What can't be used becomes an issue."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice

from dsf.api.scoring.placement_scores import status_written, validity_of
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.domain.score_matrix import ClusterDevice
from optimizer.domain.settings import OptimizerSettings
from optimizer.snapshot.fleet_snapshot import FleetSnapshot
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.entry_formats import formats_of
from optimizer.snapshot.scores.score_doubts import TrustRule
from optimizer.snapshot.scores.score_reader import ScoreReader
from optimizer.wire.request import OptimizeRequest, Preference, ScoreRef

MAX_ISSUES = 1_000
"""Issues that a fleet and a plan list; the further ones are only counted."""


class FleetReader:
    """Reads AddOnPlacementScores, page by page, into a fleet that has none yet.

    `now` is aware; a score whose `validUntil` has passed is an issue. `last`: one of the same
    request, from which scores that have not changed are taken.
    """

    def __init__(
        self,
        unscored: FleetSnapshot,
        request: OptimizeRequest,
        *,
        settings: OptimizerSettings,
        now: datetime,
        last: "FleetReader | None" = None,
    ) -> None:
        self._unscored = unscored
        self._clusters = request.cluster_names
        self._readers = _score_readers(
            unscored, request, settings, now, last.readers_of(unscored) if last else {}
        )
        self._names = request.score_names
        self._now = now
        self._versions: dict[tuple[str, str], str] = {}
        self._written: dict[tuple[str, str], datetime] = {}
        self.seen: frozenset[str] = frozenset()
        """The names of the AddOnPlacementScores that clusters of the request have."""

    def readers_of(self, unscored: FleetSnapshot) -> Mapping[str, ScoreReader]:
        """Return what read the scores of a fleet; nothing if it read those of another one."""
        return self._readers if unscored is self._unscored else {}

    def add(self, objects: Iterable[Object]) -> None:
        """Read AddOnPlacementScores; a later one of the same cluster and name wins."""
        own = [obj for obj in objects if obj["metadata"].get("namespace") in self._clusters]
        self.seen |= {name_of(obj) for obj in own}
        for obj in own:
            if name_of(obj) in self._names:
                metadata = obj["metadata"]
                version = str(metadata.get("resourceVersion") or "")
                self._versions[metadata["namespace"], name_of(obj)] = version
                written = status_written(obj)
                if written and not validity_of(obj, self._now)[1]:
                    self._written[metadata["namespace"], name_of(obj)] = written
            for reader in self._readers.values():
                reader.add(obj)

    def snapshot(self) -> FleetSnapshot:
        """Return the fleet with the scores read so far; a score that no cluster has is an issue."""
        scores = {key: reader.scores() for key, reader in self._readers.items()}
        fleet = replace(self._unscored.fleet, scores=scores)
        relevant = _devices_to_score(fleet) if self._unscored.pools else None
        found = chain.from_iterable(reader.issues(relevant) for reader in self._readers.values())
        listed = tuple(issue() for issue in islice(found, MAX_ISSUES))
        return replace(
            self._unscored,
            fleet=replace(
                fleet, issues=(*fleet.issues, *listed), unlisted_issues=sum(1 for _ in found)
            ),
            score_versions=self._versions,
            oldest_score=min(self._written.values(), default=None),
        )


def missing_score(request: OptimizeRequest, settings: OptimizerSettings) -> float | None:
    """Return the value of a missing score in a request; None if it has none."""
    stated = settings.missing_score if request.missing_score is None else request.missing_score
    return None if isinstance(stated, str) else stated


def _score_readers(
    unscored: FleetSnapshot,
    request: OptimizeRequest,
    settings: OptimizerSettings,
    now: datetime,
    last: Mapping[str, ScoreReader],
) -> dict[str, ScoreReader]:
    """Return a reader of each named score.

    Only scores that decide have a value where they are missing, never those that a limit counts.
    """
    missing = missing_score(request, settings)
    valued = {item.key for item in request.scored}
    return {
        score.key: ScoreReader(
            unscored.score_index,
            formats_of(score, unscored.declared_formats),
            missing=missing if score.key in valued else None,
            now=now,
            trust=_trust_rule(score),
            explained=request.explain or bool(request.explain_workloads),
            last=last.get(score.key),
        )
        for _, score in request.read_scores
    }


def _trust_rule(score: ScoreRef) -> TrustRule | None:
    if not isinstance(score, Preference) or score.minimum_trust is None:
        return None
    return TrustRule(score.minimum_trust, score.untrusted)


def _devices_to_score(fleet: Fleet) -> Container[ClusterDevice]:
    """Return the devices for which a missing score is an issue.

    Those that some app scores, and those that clusters and hand-written policies supply.
    """
    devices = set[ClusterDevice]().union(*(scores.known() for scores in fleet.scores.values()))
    for cluster in fleet.clusters:
        written = (item.supplies for item in cluster.candidates if not item.declared_layouts)
        supplies = chain(cluster.base, *written)
        devices |= {(cluster.name, supply.device) for supply in supplies}
    return devices
