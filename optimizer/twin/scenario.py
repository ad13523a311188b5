"""A scenario of the twin: a fleet, what its scores do, what comes, goes and fails, and who places.

Times and durations are seconds from the start, or text such as `90s`, `15m` or `24h`. Where a field
selects clusters it has names of groups or of single ones, and for workloads those of groups; empty:
all.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AwareDatetime, BeforeValidator, Field, model_validator

from dsf.api import name_syntax
from dsf.api.times import read_duration
from dsf.api.untrusted_text import listed, quoted
from optimizer.wire.base import ObjectName, RequestPart, require_unique
from optimizer.wire.mig_request import GpuNode
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, WorkloadSpec

MOST_CLUSTERS = 2_000
MOST_WORKLOADS = 20_000
MOST_VALUES = 20_000_000
"""Values of all scores: clusters x groups of workloads x rounds x scores, 8 bytes each, twice."""

LONGEST_SECONDS = 31 * 86_400.0

NAMESPACE = "default"
"""The namespace of the twin's workloads, policies and PlacementOptimization."""


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    seconds = read_duration(value)
    if seconds is None:
        raise ValueError(f"{quoted(value, 40)} is no duration such as 90s, 15m or 24h")
    return seconds


Seconds = Annotated[
    float,
    BeforeValidator(_seconds, json_schema_input_type=float | str),
    Field(ge=0, le=LONGEST_SECONDS),
]
Names = tuple[ObjectName, ...]
GroupName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=name_syntax.DNS_LABEL, description="Name.")
]


class Group(RequestPart):
    """`count` things of a kind: `edge` with a count of 3 is `edge-1`, `edge-2` and `edge-3`."""

    name: GroupName
    count: int = Field(1, ge=1, le=MOST_WORKLOADS)
    labels: dict[str, str] = Field(default_factory=dict)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the things; that of the group if there is one."""
        if self.count == 1:
            return (self.name,)
        width = len(str(self.count))
        return tuple(f"{self.name}-{n:0{width}d}" for n in range(1, self.count + 1))


class ScenarioPolicy(PolicySpec):
    """A policy that clusters of a group may enforce."""

    name: GroupName


class ClusterGroup(Group, ClusterSpec):
    """Managed clusters that are alike."""

    policies: tuple[ScenarioPolicy, ...] = Field((), max_length=50)
    gpus: tuple[GpuNode, ...] = Field(
        (), max_length=64, description="GPUs for which MIG policies are generated."
    )

    @property
    def has_policies(self) -> bool:
        """Whether policies may be enforced on the clusters."""
        return bool(self.policies or self.gpus)


class WorkloadGroup(Group, WorkloadSpec):
    """Workloads that are alike; their scores have the name of the group as the app."""

    kind: str = Field("gpu", description="Kind of the device that a replica runs on.")
    amount: float = Field(1.0, gt=0, description="How much of it a replica needs.")
    arrives: Seconds = Field(0.0, description="When the first workload comes.")
    every: Seconds = Field(0.0, description="Between two that come; 0: all at once.")
    stays: Seconds | None = Field(None, description="Until it leaves; default: it stays.")


class Signal(RequestPart):
    """A part of a score; the parts that apply to a cluster and an app are added.

    `error`: the scorer is wrong by it: it is published, but nothing that runs is worth so.
    """

    clusters: Names = ()
    workloads: Names = ()
    error: bool = False


class Constant(Signal):
    """A value for each cluster and app, drawn evenly from `least` to `most`."""

    type: Literal["Constant"]
    least: float
    most: float | None = Field(None, description="Default: least, so all have the same.")


class Diurnal(Signal):
    """A wave of a day: `height` at the time of day `peak`, its opposite half a day later.

    `spread`: the peaks of the clusters are drawn from so long before to so long after it.
    """

    type: Literal["Diurnal"]
    height: float
    peak: Seconds = 43_200.0
    spread: Seconds = 0.0


class Shift(Signal):
    """A lasting change by `by` from `at` on, or one that ends at `until`."""

    type: Literal["Shift"]
    at: Seconds
    by: float
    until: Seconds | None = None


class Noise(Signal):
    """Noise that is new in each round: `size` is a standard deviation, or half of a range.

    Normal; Uniform within +-size; Spikes of +-size in one round of `one_in`. `kept`: the part that
    stays until the next round, as in an AR(1) process of that standard deviation.
    """

    type: Literal["Noise"]
    size: float = Field(gt=0)
    shape: Literal["Normal", "Uniform", "Spikes"] = "Normal"
    one_in: int = Field(100, ge=1)
    kept: float = Field(0.0, ge=0, lt=1)
    error: bool = True


class RecordedScore(RequestPart):
    """The values of one cluster and app, or of all apps: each holds from its time to the next."""

    cluster: ObjectName
    workload: str = ""
    times: tuple[float, ...] = Field(min_length=1)
    values: tuple[float, ...]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if len(self.times) != len(self.values):
            raise ValueError(f"{len(self.times)} times, but {len(self.values)} values")
        if any(late <= early for early, late in zip(self.times, self.times[1:], strict=False)):
            raise ValueError("times: each must be after the one before")
        return self


class Recorded(Signal):
    """What was recorded. A cluster and app without a series has no score by it."""

    type: Literal["Recorded"]
    series: tuple[RecordedScore, ...] = Field(min_length=1)


AnySignal = Annotated[Constant | Diurnal | Shift | Noise | Recorded, Field(discriminator="type")]


class PublishedForecast(RequestPart):
    """What is published is a forecast: a quantile of what the score will be after `horizon`.

    `deviation`: the standard deviation of the forecasts' errors, which are normal.
    """

    horizon: Seconds = Field(gt=0)
    quantile: float = Field(0.5, gt=0, lt=1)
    deviation: float = Field(0.0, ge=0)


class ScenarioScore(RequestPart):
    """A score that a scoring API gives for each cluster and app, for one device.

    A score of several devices is stated once for each of them, by the same name.
    `total`: the unit of its sum over the hours of all replicas where they run, such as kWh or EUR;
    only for scores that are rates per hour.
    """

    name: GroupName
    device: str = "all"
    signals: tuple[AnySignal, ...] = Field(min_length=1, max_length=50)
    forecast: PublishedForecast | None = None
    lower_is_better: bool = False
    total: str = Field("", max_length=20)


OutageType = Literal["ClusterLost", "AgentStopped", "ScoringDown", "HubUnreachable"]


class Outage(RequestPart):
    """Something that does not work from a time on, or until another one.

    ClusterLost: nothing of the cluster answers, and the hub finds it out. AgentStopped: its scores
    expire. ScoringDown: the scoring APIs of `scores` answer 503. HubUnreachable: agents of the
    clusters can't reach the hub; without clusters, nobody can.
    """

    type: OutageType
    at: Seconds
    until: Seconds | None = None
    clusters: Names = ()
    scores: Names = ()

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError("until: must be after at")
        if self.scores and self.type != "ScoringDown":
            raise ValueError("scores: only for ScoringDown")
        return self

    def lasts_at(self, time: float) -> bool:
        """Tell whether it is failing at a time."""
        return self.at <= time and (self.until is None or time < self.until)


class Tenure(NamedTuple):
    """When a workload exists, in seconds from the start; the end may be infinite."""

    workload: str
    group: WorkloadGroup
    begins: float
    ends: float


class Scenario(RequestPart):
    """A fleet and what happens to it.

    `optimization` is the spec of a PlacementOptimization; what it leaves out of clusters and
    workloads is the whole fleet. `controller` says who places by it. Kept: the controller of
    PlacementOptimizations. Naive: a loop that posts its request every `naive_every`. Static: it is
    posted once, when the first scores are there, and again for each workload that arrives.
    """

    description: str = Field("", max_length=4096)
    start: AwareDatetime = datetime(2026, 1, 5, tzinfo=UTC)
    duration: Annotated[Seconds, Field(ge=60)] = 86_400.0
    scoring_interval: int = Field(300, ge=10, le=86_400)
    seed: int = Field(0, ge=0)
    clusters: tuple[ClusterGroup, ...] = Field(min_length=1, max_length=200)
    workloads: tuple[WorkloadGroup, ...] = Field(min_length=1, max_length=200)
    scores: tuple[ScenarioScore, ...] = Field(min_length=1, max_length=20)
    failures: tuple[Outage, ...] = Field((), max_length=1000)
    optimization: dict[str, Any] = Field(description="Spec of a PlacementOptimization.")
    controller: Literal["Kept", "Naive", "Static"] = "Kept"
    naive_every: Annotated[Seconds, Field(ge=10)] = 60.0

    @model_validator(mode="after")
    def _known_names(self) -> Self:
        _check_size(self.clusters, "clusters", MOST_CLUSTERS)
        _check_size(self.workloads, "workloads", MOST_WORKLOADS)
        clusters, workloads = _names(self.clusters), _names(self.workloads)
        groups = [group.name for group in self.workloads]
        scores = [score.name for score in self.scores]
        entries = [f"{score.name} of {score.device}" for score in self.scores]
        require_unique(clusters, "cluster")
        require_unique(workloads, "workload")
        require_unique(entries, "score")
        rounds = self.duration / self.scoring_interval
        if len(self.cluster_names) * len(groups) * rounds * len(scores) > MOST_VALUES:
            raise ValueError(
                f"more than {MOST_VALUES:,} values of scores: fewer clusters or groups, a shorter"
                " duration or a longer scoringInterval"
            )
        for score in self.scores:
            for signal in score.signals:
                _check_known(f"score {score.name}: clusters", signal.clusters, clusters)
                _check_known(f"score {score.name}: workloads", signal.workloads, groups)
                if isinstance(signal, Recorded):
                    of = tuple(item.workload for item in signal.series if item.workload)
                    _check_known(f"score {score.name}: series of workload", of, groups)
                    at = tuple(item.cluster for item in signal.series)
                    _check_known(f"score {score.name}: series of cluster", at, self.cluster_names)
        for failure in self.failures:
            _check_known(f"failures: {failure.type}: clusters", failure.clusters, clusters)
            _check_known(f"failures: {failure.type}: scores", failure.scores, scores)
        return self

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """The names of all clusters, in the order of their groups."""
        return tuple(name for group in self.clusters for name in group.members)

    def named_clusters(self, names: Names) -> frozenset[str]:
        """Return the clusters that names of groups and of clusters stand for; of none: all."""
        return frozenset(
            member
            for group in self.clusters
            for member in group.members
            if not names or group.name in names or member in names
        )

    def named_groups(self, names: Names) -> frozenset[str]:
        """Return the groups of workloads of these names; of none: all."""
        return frozenset(item.name for item in self.workloads if not names or item.name in names)

    def outages(self, kind: OutageType, time: float) -> Iterator[Outage]:
        """Yield the failures of a type that last at a time."""
        return (one for one in self.failures if one.type == kind and one.lasts_at(time))

    def failing(self, kind: OutageType, time: float) -> frozenset[str]:
        """Return the clusters for which something is failing at a time."""
        failing = self.outages(kind, time)
        return frozenset(name for one in failing for name in self.named_clusters(one.clusters))

    def tenures(self) -> Iterator[Tenure]:
        """Yield when each workload exists, in the order of their groups."""
        for group in self.workloads:
            stays = inf if group.stays is None else group.stays
            for number, name in enumerate(group.members):
                begins = group.arrives + number * group.every
                yield Tenure(name, group, begins, begins + stays)


def _names(groups: Sequence[Group]) -> list[str]:
    """Return the names of all members, and those of the groups that have several."""
    several = [group.name for group in groups if group.count > 1]
    return [*several, *(name for group in groups for name in group.members)]


def _check_size(groups: Sequence[Group], what: str, most: int) -> None:
    if sum(group.count for group in groups) > most:
        raise ValueError(f"{what}: at most {most} of all groups together")


def _check_known(where: str, named: Names, known: Sequence[str]) -> None:
    if unknown := sorted(set(named) - set(known)):
        raise ValueError(f"{where}: there is no {listed(unknown[:5])}")
