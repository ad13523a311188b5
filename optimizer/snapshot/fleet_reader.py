"""Objects to Fleet: what does not fit becomes a named gap."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice

from dsf.kube.port import Object
from optimizer.candidates.generate import with_candidates
from optimizer.domain.fleet import Fleet
from optimizer.domain.scores import Where
from optimizer.domain.settings import Settings
from optimizer.model.problem_size import too_large, too_many_scores
from optimizer.snapshot.gpu_pools import mig_rules
from optimizer.snapshot.labels import name_of
from optimizer.snapshot.listed import Listed, listed
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.score_reader import ScoreReader
from optimizer.snapshot.unknown_names import unknown_names
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem

SHOWN_GAPS = 1_000
"""Gaps that are shown; of more only their number is."""


class FleetReader:
    """Reads the fleet of a request: first what it names, then score objects as they come.

    `now` is aware; scores whose `validUntil` has passed are gaps.
    """

    def __init__(
        self,
        observation: Observation,
        request: OptimizeRequest,
        *,
        settings: Settings,
        now: datetime,
    ) -> None:
        self._observation = observation
        self._request = request
        self._settings = settings
        self._clusters = frozenset(cluster.name for cluster in request.clusters)
        self._seen: set[str] = set()
        unknown = unknown_names(observation, request, self.score_names)
        self._listed = unknown or _bounded(observation, request, settings)
        self._named = unknown is None
        self._readers: Mapping[str, ScoreReader] = {}
        if isinstance(self._listed, Listed):
            self._readers = _readers(self._listed, request, settings, now)

    @property
    def score_names(self) -> frozenset[str]:
        """The names of the AddOnPlacementScores that are read."""
        return frozenset(score.score_name for _, score in self._request.read_scores)

    @property
    def refused(self) -> RequestProblem | None:
        """Why the request is too large, whatever its scores are."""
        return self._listed if self._named and isinstance(self._listed, RequestProblem) else None

    @property
    def lacking(self) -> bool:
        """Whether one of the scores was seen in no cluster of the request."""
        return not self.score_names <= self._seen

    def add(self, objects: Iterable[Object]) -> None:
        """Read AddOnPlacementScores; one that was read before gives way."""
        for obj in objects:
            if obj["metadata"].get("namespace") in self._clusters:
                self._seen.add(name_of(obj))
                for reader in self._readers.values():
                    reader.add(obj)

    def unknown(self) -> RequestProblem | None:
        """Return the names that do not exist, scores that no cluster was seen to have included."""
        return unknown_names(self._observation, self._request, self._seen)

    def fleet(self) -> Fleet | RequestProblem:
        """Return what was read; refused is what is too large to solve, or has unknown names.

        A score that no cluster has is a gap of each.
        """
        return self._whole(self._listed) if isinstance(self._listed, Listed) else self._listed

    def _whole(self, read: Listed) -> Fleet | RequestProblem:
        """Return the fleet with its scores, and with candidates that are worth generating."""
        scores = {key: reader.scores() for key, reader in self._readers.items()}
        scored = replace(read.fleet, clusters=read.offered, scores=scores)
        whole = with_candidates(scored, read.pools, mig_rules(self._request), read.running)
        asked = _asked(whole) if read.pools else None
        notes = chain.from_iterable(reader.notes(asked) for reader in self._readers.values())
        of_scores = [note() for note in islice(notes, SHOWN_GAPS)]
        before = len(scored.gaps)
        fleet = replace(
            whole,
            gaps=(*whole.gaps[:before], *of_scores, *whole.gaps[before:]),
            gaps_left=sum(1 for _ in notes),
        )
        return too_large(fleet, self._settings.max_places) or fleet


def read_fleet(
    observation: Observation, request: OptimizeRequest, *, settings: Settings, now: datetime
) -> Fleet | RequestProblem:
    """Read the fleet of a request from an observation that holds the scores too.

    Scores that no cluster has are gaps: `FleetReader.unknown` refuses them.
    """
    reader = FleetReader(observation, request, settings=settings, now=now)
    reader.add(observation.scores)
    return reader.fleet()


def _bounded(
    observation: Observation, request: OptimizeRequest, settings: Settings
) -> Listed | RequestProblem:
    """Read what the request names, unless its scores would not fit into memory."""
    read, most = listed(observation, request, settings.cluster_label_key), settings.max_places
    scores = len(request.read_scores)
    return too_large(read.fleet, most) or too_many_scores(read.wanted, scores, most) or read


def _readers(
    read: Listed, request: OptimizeRequest, settings: Settings, now: datetime
) -> dict[str, ScoreReader]:
    """Return a reader of each named score; what only a limit counts is never made up."""
    stated = settings.missing_score if request.missing_score is None else request.missing_score
    valued = {item.key for item in request.scored}
    return {
        score.key: ScoreReader(
            read.wanted,
            score,
            missing=None if isinstance(stated, str) or score.key not in valued else stated,
            now=now,
        )
        for _, score in request.read_scores
    }


def _asked(fleet: Fleet) -> Container[Where]:
    """Return the devices that listed policies or clusters supply, or that some app scores."""
    asked = set[Where]().union(*(scores.known() for scores in fleet.scores.values()))
    for cluster in fleet.clusters:
        listed_ = (item.supplies for item in cluster.candidates if not item.layouts)
        asked |= {(cluster.name, supply.device) for supply in chain(cluster.base, *listed_)}
    return asked
