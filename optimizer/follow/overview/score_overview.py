"""Scores by managed cluster, and the scorers: which is best, what a score means, where it fails."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.score_meaning import Direction, ScoreRange
from dsf.api.crd.score_rules import Normalize
from dsf.api.scoring import placement_scores
from dsf.api.times import read_time
from dsf.api.untrusted_text import counted
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.base import Name, ResultPart, Text


class ScorerFailure(ResultPart):
    """A managed cluster on which a scorer fails."""

    cluster: Name
    reason: Name
    message: Text
    since: Annotated[datetime | None, Field(exclude=True)] = None


class ScoreScale(ResultPart):
    """What the scoring API measures where the published score is 0, and where it is 100."""

    unit: Text = ""
    zero: float
    hundred: float


class ScorerOverview(ResultPart):
    """A DynamicScorer, its score, and how many managed clusters have it."""

    name: Name
    namespace: Name
    score: Annotated[Name, Field(description="Name of its AddOnPlacementScores; may be empty.")]
    display_name: Text = ""
    description: Text = ""
    unit: Text = ""
    direction: Annotated[
        Direction | None,
        Field(description="Of the published values; null: not stated, so higher is better."),
    ] = None
    scale: Annotated[
        ScoreScale | None,
        Field(
            description="Of a score that is normalized; left out: it is published as measured.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    dimension_format: Text = ""
    interval_seconds: int | None = None
    health: Annotated[Name, Field(description="Active, Inactive or Unknown.")]
    reason: Annotated[Name, Field(description="Reason of the condition Ready.")]
    message: Text = ""
    clusters: Annotated[
        dict[Name, int], Field(description="Managed clusters: desired, distributed, scoring, ...")
    ]
    failing: tuple[ScorerFailure, ...] = ()
    since: Annotated[datetime | None, Field(exclude=True)] = None
    """Since when it is not Ready; None: it is, or nobody says it."""
    published: Annotated[ScoreRange | None, Field(exclude=True)] = None

    @property
    def ready(self) -> bool:
        """Whether the scorer works wherever it is desired."""
        counts = self.clusters
        return (
            self.health == "Active"
            and not self.failing
            and counts.get("scoring", 0) >= counts.get("desired", 0)
        )

    @property
    def stated(self) -> dict[str, str | None]:
        """What it says of its score."""
        fields = ("display_name", "description", "unit", "direction", "dimension_format")
        return {"scorer": self.name, **{name: getattr(self, name) for name in fields}}

    @property
    def reach(self) -> str:
        """On how many of the managed clusters that should have it, it scores."""
        desired = self.clusters.get("desired", 0)
        if not desired:
            return "is sent to no cluster" if self.clusters else "has not said where it scores"
        return f"scores on {self.clusters.get('scoring', 0)} of {counted(desired, 'cluster')}"


def scorer_overview(scorer: Object) -> ScorerOverview:
    """Return a DynamicScorer; the last synced configuration wins over the spec."""
    status = scorer.get("status") or {}
    ready = find(conditions_of(scorer), "Ready") or {}
    scoring = _configured(scorer, "scoring")
    params = (scoring.get("params") if isinstance(scoring, Mapping) else None) or {}
    meaning = placement_scores.published_meaning(scorer)
    return ScorerOverview(
        name=name_of(scorer),
        namespace=str(scorer["metadata"].get("namespace") or ""),
        score=placement_scores.published_score(scorer),
        display_name=meaning.display_name or "",
        description=str(_configured(scorer, "description") or ""),
        unit=meaning.unit or "",
        direction=meaning.direction,
        published=meaning.range,
        scale=_scale(scorer, scoring),
        dimension_format=placement_scores.format_for_apps(scorer),
        interval_seconds=_whole(params.get("interval")),
        health=str(status.get("healthStatus") or "Unknown"),
        reason=str(ready.get("reason") or "NotReported"),
        message=str(ready.get("message") or ""),
        clusters={
            str(key): value
            for key, value in (status.get("clusters") or {}).items()
            if isinstance(value, int)
        },
        failing=tuple(
            ScorerFailure(
                cluster=str(item.get("name") or ""),
                reason=str(item.get("reason") or ""),
                message=str(item.get("message") or ""),
                since=read_time(item.get("since")),
            )
            for item in status.get("failingClusters") or ()
        ),
        since=None if ready.get("status") == "True" else read_time(ready.get("lastTransitionTime")),
    )


def _scale(scorer: Object, scoring: Any) -> ScoreScale | None:
    """Return the scale of a normalized score; None also where it can't be read."""
    try:
        normalize = Normalize.model_validate(scoring["normalize"])
    except (TypeError, KeyError, ValidationError):
        return None
    ends = (normalize.min, normalize.max)
    zero, hundred = reversed(ends) if normalize.invert else ends
    return ScoreScale(unit=str(_configured(scorer, "unit") or ""), zero=zero, hundred=hundred)


def _configured(scorer: Object, field: str) -> Any:
    """Return a field of the configuration in use; None if nothing states it."""
    synced = (scorer.get("status") or {}).get("lastSyncedConfig") or {}
    return synced.get(field) or (scorer.get("spec") or {}).get(field)


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


class ClusterScore(ResultPart):
    """One score of one managed cluster: the mean and the range of its entries."""

    cluster: Name
    mean: float
    minimum: int
    maximum: int
    entries: int
    valid_until: datetime | None = None
    expired: bool = False


class ScoreSummary(NamedTuple):
    """What a ClusterScore says; a fleet may have 100,000 of them."""

    cluster: str
    mean: float
    minimum: int
    maximum: int
    entries: int
    valid_until: datetime | None = None
    expired: bool = False
    written: datetime | None = None


ClusterScores = Mapping[str, Sequence[ScoreSummary]]
"""The scores of all managed clusters by score name."""

NO_SCORES: ClusterScores = {}


class ScoreAge(ResultPart):
    """When the score of a managed cluster was published last."""

    cluster: Name
    written: datetime
    expired: bool = False


class ScoreOverview(ResultPart):
    """A score over the fleet. Expired scores count as such and are in no ranking."""

    name: Name
    scorer: Annotated[Name, Field(description="Name of its DynamicScorer; empty: none known.")] = ""
    display_name: Text = ""
    description: Text = ""
    unit: Text = ""
    direction: Direction | None = None
    clusters: int
    entries: int
    expired: Annotated[int, Field(description="Managed clusters whose score has expired.")] = 0
    valid_until: Annotated[
        datetime | None, Field(description="When the first of them expires; left out: never.")
    ] = None
    lasting: Annotated[int, Field(description="Valid scores that never expire.")] = 0
    oldest: Annotated[
        ScoreAge | None, Field(description="The one published first; null: not known.")
    ] = None
    oldest_expired: Annotated[
        ScoreAge | None,
        Field(
            description="The one published first of those that have expired; left out: none.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    newest: datetime | None = None
    mean: Annotated[float | None, Field(description="Mean over the clusters; null: none valid.")]
    best: tuple[ClusterScore, ...]
    worst: Annotated[
        tuple[ClusterScore, ...], Field(description="Worst first; none is as good as the best.")
    ] = ()


def score_summary(row: ScoreRow, *, now: datetime) -> ScoreSummary:
    """Return the aggregate of one AddOnPlacementScore; without entries its mean is 0."""
    valid_until = None if row.until == placement_scores.LONG_AGO else row.until
    entries = len(row.values)
    expired = row.expired(now)
    return ScoreSummary(row.cluster, *row.range, entries, valid_until, expired, row.written)


def score_overviews(
    scores: ClusterScores, scorers: Iterable[ScorerOverview], *, shown: int
) -> tuple[ScoreOverview, ...]:
    """Return each score by name, with its `shown` best and worst managed clusters."""
    by_score = members_by_key((item.score, item) for item in scorers)
    return tuple(
        _overview(name, rows, by_score.get(name, [None])[0], shown)
        for name, rows in sorted(scores.items())
    )


def _overview(
    name: str, rows: Sequence[ScoreSummary], scorer: ScorerOverview | None, shown: int
) -> ScoreOverview:
    ranked = ranking(rows, scorer.direction if scorer else None)
    until = [item.valid_until for item in ranked if item.valid_until]
    ages = sorted((row.written, row.cluster, row.expired) for row in rows if row.written)
    worse = [item for item in ranked[shown:][-shown:] if item.mean != ranked[0].mean]
    return ScoreOverview(
        name=name,
        clusters=len(rows),
        entries=sum(item.entries for item in rows),
        expired=sum(item.expired for item in rows),
        valid_until=min(until, default=None),
        lasting=len(ranked) - len(until),
        oldest=next(map(_age, ages), None),
        oldest_expired=next((_age(age) for age in ages if age[2]), None),
        newest=ages[-1][0] if ages else None,
        mean=round(sum(item.mean for item in ranked) / len(ranked), 2) if ranked else None,
        best=tuple(_cluster_score(item) for item in ranked[:shown]),
        worst=tuple(_cluster_score(item) for item in reversed(worse)),
        **(scorer.stated if scorer else {}),
    )


def _age(age: tuple[datetime, str, bool]) -> ScoreAge:
    written, cluster, expired = age
    return ScoreAge(cluster=cluster, written=written, expired=expired)


def _cluster_score(item: ScoreSummary) -> ClusterScore:
    return ClusterScore(**{name: getattr(item, name) for name in ClusterScore.model_fields})


def ranking(rows: Iterable[ScoreSummary], direction: Direction | None) -> tuple[ScoreSummary, ...]:
    """Return the managed clusters with valid entries, the best first; equals by name."""
    sign = 1 if direction == "LowerIsBetter" else -1
    usable = (item for item in rows if item.entries and not item.expired)
    return tuple(sorted(usable, key=lambda item: (sign * item.mean, item.cluster)))
