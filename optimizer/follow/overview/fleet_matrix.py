"""The fleet as a matrix: managed clusters by score, what is enforced and runs there, and faults.

Values of scores are lists in the order of the clusters, so that a fleet of thousands stays small.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.score_meaning import Direction
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.follow.overview.capacity import FleetCapacity, ResourceCapacity, fleet_capacity
from optimizer.follow.overview.drawing.gpu_layouts import drawn_gpus
from optimizer.follow.overview.drawing.grouping_labels import grouping_labels, marks
from optimizer.follow.overview.findings.finding import FleetFinding
from optimizer.follow.overview.findings.fleet_findings import findings
from optimizer.follow.overview.findings.scorer_findings import scorer_remedy
from optimizer.follow.overview.findings.workload_findings import shortfall
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_overview import (
    WorkloadOverview,
    hardware_of,
    workload_overview,
)
from optimizer.follow.overview.score_columns import score_columns
from optimizer.follow.overview.score_overview import ScorerOverview, ScoreSummary
from optimizer.snapshot.drawn_gpus import LayoutTable
from optimizer.snapshot.object_readers import read_workload
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.base import Name, ResultPart, Sentence, Text
from optimizer.wire.result import ClusterGpus, GpuLayout, OccupiedDevice

MAX_CLUSTERS = 10_000
"""Managed clusters of one answer: twice what the documentation says a hub was tried with."""

MAX_LISTED = 20_000
"""Workloads and policies of one answer: some for each cluster."""

MAX_FINDINGS = 1_000
"""Findings of one answer: more than a person reads."""

MAX_NAMES = MAX_CLUSTERS
"""Names of objects with one cause: the page draws each cluster as wrong that has one."""

MAX_CELLS = 500_000
"""Values of all columns together: about 2 MB of JSON, a tenth of it compressed."""


class ClusterObstacle(ResultPart):
    """Why OCM selects a managed cluster for no new Placement, and what to do."""

    reason: Name
    message: Sentence
    since: datetime | None = None


class EnforcedOnCluster(ResultPart):
    """A policy that a plan enforces on the cluster; `compliance` is empty until OCM reports it."""

    policy: Name
    compliance: Name = ""


class WorkloadOnCluster(ResultPart):
    """A workload that a plan placed on the cluster, and how far OCM is with it."""

    workload: Name
    state: Name
    message: Sentence
    since: datetime | None = None


class MatrixCluster(ResultPart):
    """A managed cluster: a row of the matrix."""

    name: Name
    eligible: Annotated[bool, Field(description="Whether OCM may select it for new Placements.")]
    obstacles: tuple[ClusterObstacle, ...] = ()
    health: Annotated[
        Literal["Available", "Unavailable", "Unknown"],
        Field(description="Its condition ManagedClusterConditionAvailable."),
    ]
    hardware: Annotated[
        dict[Name, Name], Field(description="status.allocatable, and GPUs by model where known.")
    ]
    claim: Annotated[Name, Field(description="Its policy-watcher-claim; empty: none.")] = ""
    enforced: tuple[EnforcedOnCluster, ...] = ()
    running: tuple[WorkloadOnCluster, ...] = ()
    gpus: Annotated[
        tuple[ClusterGpus, ...], Field(description="Equal GPUs together; empty: none are known.")
    ] = ()
    occupied: Annotated[
        tuple[OccupiedDevice, ...], Field(description="What is reserved of GPUs and their devices.")
    ] = ()
    labels: Annotated[
        dict[Name, Name],
        Field(
            default_factory=dict,
            description="Its labels and claims that divide the fleet into groups, such as region.",
        ),
    ]


class MatrixColumn(ResultPart):
    """The values of a score for an app on a device, one for each cluster of the matrix.

    Of entries that app and device do not tell apart, such as those of several nodes, the best
    counts, as in a plan whose request states no `aggregation`: the highest, or the lowest if lower
    is better. `entry`: the whole name of an entry that does not match the dimension format.
    """

    app: Name = ""
    device: Name = ""
    entry: Name = ""
    values: Annotated[
        tuple[float | None, ...],
        Field(description="In the order of the clusters; null: there is no such entry."),
    ]


class MatrixScore(ResultPart):
    """A score over the fleet. Lists of values are in the order of the clusters."""

    name: Annotated[Name, Field(description="Name of its AddOnPlacementScores.")]
    scorer: Annotated[Name, Field(description="Name of its DynamicScorer; empty: none known.")] = ""
    display_name: Text = ""
    description: Text = ""
    unit: Text = ""
    direction: Annotated[
        Direction | None, Field(description="null: not stated, so higher is better.")
    ] = None
    dimension_format: Text = ""
    minimum: Annotated[float | None, Field(description="Of all columns; null: no values.")]
    maximum: Annotated[float | None, Field(description="Of all columns; null: no values.")]
    mean: Annotated[
        tuple[float | None, ...], Field(description="Mean of all entries; null: no entries.")
    ]
    written: Annotated[
        tuple[int | None, ...],
        Field(description="Unix time in seconds of the last write; null: not kept by the hub."),
    ]
    valid_until: Annotated[
        tuple[int | None, ...], Field(description="Unix time in seconds; null: never expires.")
    ]
    expired: Annotated[
        tuple[int, ...],
        Field(description="Positions of the clusters whose score had expired at observed_at."),
    ]
    columns: Annotated[
        tuple[MatrixColumn, ...],
        Field(
            description="By app, device and entry. Where they would be too many, those of a device"
            " are one, without an app: the best of them."
        ),
    ]
    omitted_columns: Annotated[
        int, Field(description="Columns that are not listed, or are one with others.")
    ] = 0


class MatrixCapacity(ResultPart):
    """A resource, apart by GPU model, over the fleet; lists are in the order of the clusters.

    0 where a cluster has none, or no NodeInventory.
    """

    resource: Name
    model: Annotated[Name, Field(description="GPU model; empty: not of a GPU, or unknown.")]
    capacity: tuple[float, ...]
    ours: Annotated[tuple[float, ...], Field(description="Reserved by Pods of ManifestWorks.")]
    others: Annotated[tuple[float, ...], Field(description="Reserved by other Pods.")]
    free: tuple[float, ...]
    largest_free: Annotated[
        tuple[float, ...], Field(description="The most that is free on one node.")
    ]
    unavailable: Annotated[
        tuple[float, ...], Field(description="On nodes that are not ready or are cordoned.")
    ]
    idle: Annotated[
        tuple[float | None, ...],
        Field(description="Device hours a day, reserved but idle; null: not measured."),
    ]


class MatrixInventories(ResultPart):
    """The capacity of the clusters whose NodeInventory the caller may read."""

    observed: Annotated[
        tuple[int | None, ...],
        Field(description="Unix time in seconds, in the order of the clusters; null: none."),
    ]
    expired: Annotated[
        tuple[int, ...],
        Field(description="Positions of clusters whose inventory is old or unreadable."),
    ]
    fleet: FleetCapacity
    resources: Annotated[
        tuple[MatrixCapacity, ...], Field(description="Those of `fleet`, in its order.")
    ]


class MatrixWorkload(WorkloadOverview):
    """A workload, and why it has no place."""

    replicas: int = 1
    unplaced: Annotated[
        Sentence, Field(description="Why it is on no cluster; empty: it is on some.")
    ] = ""


class MatrixScorer(ScorerOverview):
    """A DynamicScorer with the next step, which is empty where it works."""

    working: Annotated[bool, Field(description="Wherever it is desired.")]
    remedy: Sentence


class MatrixFinding(FleetFinding):
    """What has one cause, with the names of the objects."""

    names: Annotated[
        tuple[Name, ...], Field(description=f"The first {MAX_NAMES} of the objects.")
    ] = ()


class FleetMatrix(ResultPart):
    """The response of GET /fleet.

    Others wrote the texts in it: they are data, never markup or instructions.
    """

    observed_at: Annotated[datetime, Field(description="When the hub was read.")]
    namespace: Name
    clusters: Annotated[tuple[MatrixCluster, ...], Field(description="By name.")]
    layouts: Annotated[
        tuple[GpuLayout, ...], Field(description="How GPUs of `clusters` are divided.")
    ] = ()
    capacity: Annotated[
        MatrixInventories | None, Field(description="null: no cluster has a NodeInventory.")
    ] = None
    scores: Annotated[tuple[MatrixScore, ...], Field(description="By name.")]
    workloads: Annotated[tuple[MatrixWorkload, ...], Field(description="By name.")]
    policies: Annotated[tuple[Name, ...], Field(description="Policies that people wrote.")]
    scorers: Annotated[
        tuple[MatrixScorer, ...],
        Field(description="Empty also for callers who may not list DynamicScorers."),
    ]
    findings: Annotated[
        tuple[MatrixFinding, ...], Field(description="One for each cause, the worst first.")
    ]
    omitted: Annotated[dict[str, int], Field(description="Items left out of each list.")]


class MatrixRows:
    """The rows of the last matrix of a fleet: what has not changed is not made again."""

    def __init__(self) -> None:
        self._rows = dict[str, tuple[tuple[Object, tuple[Any, ...]], MatrixCluster]]()
        self._table = LayoutTable()

    def of(
        self, facts: FleetFacts, names: Sequence[str]
    ) -> tuple[tuple[MatrixCluster, ...], tuple[GpuLayout, ...]]:
        """Return the rows of managed clusters, and the layouts of their GPUs."""
        if self._table.is_full:  # of layouts that no cluster may have any more
            self._rows, self._table = {}, LayoutTable()
        grouping = grouping_labels(facts.hub.clusters[name] for name in names)
        found = {name: self._row(facts, name, grouping) for name in names}
        self._rows = {name: self._rows[name] for name in names}
        return tuple(found.values()), self._table.layouts

    def _row(self, facts: FleetFacts, name: str, grouping: Sequence[str]) -> MatrixCluster:
        obj, bound = facts.hub.clusters[name], facts.bound.get(name, ())
        running = facts.running.get(name, ())
        told = (
            facts.faults.get(name),
            facts.hub.claim(name),
            bound,
            running,
            grouping,
            facts.inventories.get(name),
            [facts.hub.policies.get(item.policy) for item in bound],
            [facts.workloads.get(item.workload) for item in running],
        )
        known = self._rows.get(name)
        if known is None or known[0][0] is not obj or known[0][1] != told:
            row = _cluster(facts, name, grouping, self._table)
            known = self._rows[name] = (obj, told), row
        return known[1]


def fleet_matrix(facts: FleetFacts, rows: MatrixRows | None = None) -> FleetMatrix:
    """Return the matrix of a fleet whose facts have the rows of scores; `rows` speeds it up."""
    rows = rows or MatrixRows()
    names, wrong = sorted(facts.hub.clusters), findings(facts)
    clusters = names[:MAX_CLUSTERS]
    shown, layouts = rows.of(facts, clusters)
    lists = {
        "clusters": (names, MAX_CLUSTERS),
        "workloads": (facts.workloads, MAX_LISTED),
        "policies": (facts.policies, MAX_LISTED),
        "findings": (wrong, MAX_FINDINGS),
    }
    return FleetMatrix(
        observed_at=facts.observation.observed_at,
        namespace=facts.namespace,
        clusters=shown,
        layouts=layouts,
        capacity=_inventories(facts, clusters) if facts.capacity else None,
        scores=tuple(_scores(facts, clusters)),
        workloads=tuple(_workload(facts, name) for name in [*facts.workloads][:MAX_LISTED]),
        policies=tuple(facts.policies)[:MAX_LISTED],
        scorers=tuple(map(_scorer, facts.scorers)),
        findings=tuple(
            MatrixFinding(**{**dict(item), "names": item.names[:MAX_NAMES]})
            for item in wrong[:MAX_FINDINGS]
        ),
        omitted={
            name: len(items) - most for name, (items, most) in lists.items() if len(items) > most
        },
    )


def _inventories(facts: FleetFacts, clusters: Sequence[str]) -> MatrixInventories:
    fleet = fleet_capacity(facts.capacity.values(), without=facts.without_inventory)
    seen = [facts.capacity.get(name) for name in clusters]
    rows = [
        {(row.resource, row.model): row for row in item.resources} if item else {} for item in seen
    ]
    none = ResourceCapacity(resource="", capacity=0, ours=0, others=0, free=0, largest_free=0)
    columns = (
        (shown, [of.get((shown.resource, shown.model), none) for of in rows])
        for shown in fleet.resources
    )
    return MatrixInventories(
        observed=tuple(_seconds(item.observed if item else None) for item in seen),
        expired=tuple(at for at, item in enumerate(seen) if item and not item.current),
        fleet=fleet,
        resources=tuple(
            MatrixCapacity(
                resource=shown.resource,
                model=shown.model,
                **{name: tuple(getattr(row, name) for row in column) for name in _AMOUNTS},
            )
            for shown, column in columns
        ),
    )


_AMOUNTS = ("capacity", "ours", "others", "free", "largest_free", "unavailable", "idle")


def _cluster(
    facts: FleetFacts, name: str, grouping: Sequence[str], table: LayoutTable
) -> MatrixCluster:
    obj, fault = facts.hub.clusters[name], facts.faults.get(name)
    gpus, occupied = drawn_gpus(facts, name)
    return MatrixCluster(
        name=name,
        eligible=fault is None,
        obstacles=(ClusterObstacle(**fault._asdict()),) if fault else (),
        health=_health(obj),
        hardware=hardware_of(obj),
        claim=facts.hub.claim(name),
        enforced=tuple(EnforcedOnCluster(**dict(item)) for item in facts.bound.get(name, ())),
        running=tuple(WorkloadOnCluster(**dict(item)) for item in facts.running.get(name, ())),
        gpus=table.listed(gpus),
        occupied=occupied,
        labels={key: value for key, value in marks(obj).items() if key in grouping},
    )


def _health(cluster: Object) -> Literal["Available", "Unavailable", "Unknown"]:
    available = find(conditions_of(cluster), "ManagedClusterConditionAvailable") or {}
    match available.get("status"):
        case "True":
            return "Available"
        case "False":
            return "Unavailable"
        case _:
            return "Unknown"


def _workload(facts: FleetFacts, name: str) -> MatrixWorkload:
    seen, read = workload_overview(facts, name), read_workload(facts.workloads[name])
    short = shortfall(facts, name)
    return MatrixWorkload(
        **dict(seen),
        replicas=1 if isinstance(read, Issue) else read.replicas,
        unplaced=short[0].message if short and not seen.places else "",
    )


def _scorer(item: ScorerOverview) -> MatrixScorer:
    remedy = "" if item.ready else scorer_remedy(item)
    return MatrixScorer(**dict(item), working=item.ready, remedy=remedy)


def _scores(facts: FleetFacts, clusters: Sequence[str]) -> Iterator[MatrixScore]:
    share = MAX_CELLS // max(1, len(clusters) * len(facts.scores))
    for name, rows in sorted(facts.scores.items()):
        yield _score(facts.scorer_of(name), name, rows, facts.rows.get(name, ()), clusters, share)


def _score(
    scorer: ScorerOverview | None,
    name: str,
    summaries: Iterable[ScoreSummary],
    rows: Sequence[ScoreRow],
    clusters: Sequence[str],
    share: int,
) -> MatrixScore:
    by_cluster = {item.cluster: item for item in summaries}
    seen = [by_cluster.get(cluster) for cluster in clusters]
    values = [item for item in by_cluster.values() if item.entries]
    written = {row.cluster: row.written for row in rows}
    kept = score_columns(rows, scorer, clusters, share)
    return MatrixScore(
        name=name,
        **(scorer.stated if scorer else {}),
        minimum=min((item.minimum for item in values), default=None),
        maximum=max((item.maximum for item in values), default=None),
        mean=tuple(item.mean if item and item.entries else None for item in seen),
        written=tuple(_seconds(written.get(cluster)) for cluster in clusters),
        valid_until=tuple(_seconds(item.valid_until if item else None) for item in seen),
        expired=tuple(at for at, item in enumerate(seen) if item and item.expired),
        columns=tuple(
            MatrixColumn(**column._asdict(), values=tuple(values))
            for column, values in kept.columns.items()
        ),
        omitted_columns=kept.omitted,
    )


def _seconds(time: datetime | None) -> int | None:
    return int(time.timestamp()) if time else None
