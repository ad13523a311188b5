"""What answers about a fleet are made of, as it was read from the hub at one moment.

The entries of scores are columns: an app on a device, and its value on each managed cluster.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from dsf.api.names import ROOT_POLICY_LABEL
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import status_written
from dsf.kube.port import Object
from dsf.placement import Obstacle
from optimizer.domain.arrays import members_by_key
from optimizer.follow.overview.score_overview import ClusterScores, ScorerOverview
from optimizer.follow.placement_status.hub_state import (
    HubState,
    read_hub_state,
)
from optimizer.snapshot.object_readers import is_generated, is_workload, labels_of, name_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.scores.score_index import entries_of
from optimizer.wire.placement_status import BoundPolicy, PlacementStatus, WorkloadLanding
from optimizer.wire.request import DEFAULT_FORMAT

MAX_KNOWN = 100_000
"""Entry names whose columns are kept: more than apps times devices, less than pods of a fleet."""


class ScoreColumn(NamedTuple):
    """What a column is about. `entry`: the name of entries that do not match the format."""

    app: str = ""
    device: str = ""
    entry: str = ""


ClusterValues = dict[str, int]
"""A value by managed cluster: the best of the entries that belong to one column.

That is what a plan counts unless its request says otherwise (`aggregation`).
"""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns of one score. `written`: when each cluster's score was written last.

    `best` returns the better of two values.
    """

    dimension: DimensionFormat | None = None
    best: Callable[[int, int], int] = max
    columns: dict[ScoreColumn, ClusterValues] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)

    def column_of(self, entry: str, cluster: str) -> ScoreColumn:
        """Return the column of an entry; nodes, pods and the like share the one of their device."""
        labels = self.dimension.match(entry) if self.dimension else None
        if labels is None or labels.get("cluster", cluster) != cluster:
            return ScoreColumn(entry=entry)
        return ScoreColumn(labels.get("app", ""), labels.get("device", ""))

    def at_most(self, most: int) -> dict[ScoreColumn, ClusterValues]:
        """Return at most so many columns, in order.

        If there are more, those of one device count as one, with the best of its apps. If there
        are still more, those with values on the most clusters are left.
        """
        found = self.columns if len(self.columns) <= most else self._by_device()
        fullest = sorted(found, key=lambda column: (-len(found[column]), column))[:most]
        return {column: found[column] for column in sorted(fullest)}

    def _by_device(self) -> dict[ScoreColumn, ClusterValues]:
        found: dict[ScoreColumn, ClusterValues] = {}
        for column, values in self.columns.items():
            folded = found.setdefault(column._replace(app=""), {})
            for cluster, value in values.items():
                folded[cluster] = self.best(folded.get(cluster, value), value)
        return found


class FleetColumns:
    """The columns of all scores, filled from AddOnPlacementScores one after the other."""

    def __init__(self, scorers: Iterable[ScorerOverview] = ()) -> None:
        self._scorers = {item.score: item for item in scorers}
        self._scores: dict[str, ScoreColumns] = {}
        self._known: dict[tuple[str, str], ClusterValues] = {}

    @property
    def scores(self) -> Mapping[str, ScoreColumns]:
        """The columns by score name."""
        return self._scores

    def add(self, obj: Object) -> None:
        """Add the entries of an AddOnPlacementScore."""
        score, cluster = name_of(obj), str(obj["metadata"].get("namespace") or "")
        if score not in self._scores:
            self._scores[score] = self._empty(score)
        found = self._scores[score]
        written = status_written(obj)
        if written:
            found.written[cluster] = written
        for entry, value in entries_of(obj):
            values = self._values(found, score, entry, cluster)
            values[cluster] = found.best(values.get(cluster, value), value)

    def _empty(self, score: str) -> ScoreColumns:
        scorer = self._scorers.get(score)
        stated = DimensionFormat.parse(scorer.dimension_format if scorer else DEFAULT_FORMAT)
        lowest = scorer is not None and scorer.direction == "LowerIsBetter"
        known = stated if isinstance(stated, DimensionFormat) else None
        return ScoreColumns(known, min if lowest else max)

    def _values(self, found: ScoreColumns, score: str, entry: str, cluster: str) -> ClusterValues:
        """Return the column of an entry; clusters mostly have the same entries, so it is kept."""
        values = self._known.get((score, entry))
        if values is None:
            column = found.column_of(entry, cluster)
            values = found.columns.setdefault(column, {})
            named = found.dimension is not None and "cluster" in found.dimension.fields
            if not named and len(self._known) < MAX_KNOWN:
                self._known[score, entry] = values
        return values


@dataclass(frozen=True)
class FleetFacts:
    """The objects of one namespace, the managed clusters, all scores and all scorers.

    `status`: what OCM has made of what was generated in the namespace. `columns`: the entries of
    scores, if they were read. `with_workloads`: if the namespace has nothing, those that have
    workloads, as far as they are known; None if nobody looked for them.
    """

    namespace: str
    observation: Observation
    status: PlacementStatus
    scores: ClusterScores = field(default_factory=dict)
    scorers: tuple[ScorerOverview, ...] = ()
    columns: Mapping[str, ScoreColumns] = field(default_factory=dict)
    with_workloads: Sequence[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the namespace has no object that a plan could be about."""
        seen = self.observation
        return not (seen.workloads or seen.policies or seen.placements or seen.bindings)

    @cached_property
    def hub(self) -> HubState:
        """The objects by name, and what is enforced where."""
        return read_hub_state(self.observation, self.namespace)

    @cached_property
    def faults(self) -> Mapping[str, Obstacle]:
        """Why OCM selects a managed cluster for no new Placement, by name; only such clusters."""
        found = ((name, self.hub.fault(name)) for name in self.hub.clusters)
        return {name: fault for name, fault in found if fault}

    @cached_property
    def workloads(self) -> Mapping[str, Object]:
        """The ManifestWorkReplicaSets with the labels of a request, by name."""
        found = {name_of(obj): obj for obj in self.observation.workloads}
        return {name: found[name] for name in sorted(found) if is_workload(found[name])}

    @cached_property
    def policies(self) -> Mapping[str, Object]:
        """The policies that people wrote, by name: neither generated nor replicated ones."""
        found = {name_of(obj): obj for obj in self.observation.policies}
        return {
            name: found[name]
            for name in sorted(found)
            if not is_generated(found[name]) and ROOT_POLICY_LABEL not in labels_of(found[name])
        }

    @cached_property
    def policies_by_cluster(self) -> Mapping[str, Sequence[Object]]:
        """The policies by the managed cluster that their name ends with after a `-`.

        Under the empty name are those that name none.
        """
        return members_by_key(
            (_cluster_in(name, self.hub.clusters), obj) for name, obj in self.policies.items()
        )

    @cached_property
    def bound(self) -> Mapping[str, Sequence[BoundPolicy]]:
        """The policies that generated PlacementBindings bind to each managed cluster."""
        return members_by_key((item.cluster, item) for item in self.status.policies)

    @cached_property
    def running(self) -> Mapping[str, Sequence[WorkloadLanding]]:
        """The workloads that were placed on each managed cluster."""
        return members_by_key((item.cluster, item) for item in self.status.workloads)

    @cached_property
    def landings(self) -> Mapping[str, Sequence[WorkloadLanding]]:
        """How far OCM is with each placed workload, on each of its managed clusters."""
        return members_by_key((item.workload, item) for item in self.status.workloads)

    def scorer_of(self, score: str) -> ScorerOverview | None:
        """Return the DynamicScorer that fills a score; None if none is known."""
        return next((item for item in self.scorers if item.score == score), None)


def _cluster_in(policy: str, clusters: Mapping[str, Object]) -> str:
    """Return the longest name of a cluster that the name of a policy ends with after a `-`."""
    _, *rests = policy.split("-")
    ends = ("-".join(rests[at:]) for at in range(len(rests)))
    return next((end for end in ends if end in clusters), "")
