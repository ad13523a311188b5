"""Scores aggregated by managed cluster and by name: which cluster is best in which score."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from dsf.api.crd.score_meaning import Direction
from dsf.api.scoring.placement_scores import validity_of
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.overview.scorer_overview import ScorerOverview
from optimizer.snapshot.scores.score_index import entries_of
from optimizer.wire.base import Name, ResultPart, Text


class ClusterScore(ResultPart):
    """One score of one managed cluster: the mean and the range of its entries."""

    cluster: Name
    mean: float
    minimum: int
    maximum: int
    entries: int
    valid_until: datetime | None = None
    expired: bool = False


ClusterScores = Mapping[str, Sequence[ClusterScore]]
"""The scores of all managed clusters by score name."""


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
        datetime | None,
        Field(description="When the first of them expires; left out: never."),
    ] = None
    mean: Annotated[float | None, Field(description="Mean over the clusters; null: none valid.")]
    best: tuple[ClusterScore, ...]
    worst: Annotated[
        tuple[ClusterScore, ...],
        Field(description="Worst first; none is as good as the best."),
    ] = ()


def cluster_score(score: Object, *, now: datetime) -> ClusterScore:
    """Return the aggregate of one AddOnPlacementScore; without entries its mean is 0."""
    found = [value for _, value in entries_of(score)]
    values, (valid_until, expired) = found or [0], validity_of(score, now)
    return ClusterScore(
        cluster=str(score["metadata"].get("namespace") or ""),
        mean=round(sum(values) / len(values), 2),
        minimum=min(values),
        maximum=max(values),
        entries=len(found),
        valid_until=valid_until,
        expired=expired,
    )


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
    name: str, rows: Sequence[ClusterScore], scorer: ScorerOverview | None, shown: int
) -> ScoreOverview:
    ranked = ranking(rows, scorer.direction if scorer else None)
    until = [item.valid_until for item in ranked if item.valid_until]
    worse = [item for item in ranked[shown:][-shown:] if item.mean != ranked[0].mean]
    described = {} if scorer is None else _described(scorer)
    return ScoreOverview(
        name=name,
        clusters=len(rows),
        entries=sum(item.entries for item in rows),
        expired=sum(item.expired for item in rows),
        valid_until=min(until, default=None),
        mean=round(sum(item.mean for item in ranked) / len(ranked), 2) if ranked else None,
        best=ranked[:shown],
        worst=tuple(reversed(worse)),
        **described,
    )


def ranking(rows: Iterable[ClusterScore], direction: Direction | None) -> tuple[ClusterScore, ...]:
    """Return the managed clusters with valid entries, the best first; equals by name."""
    sign = 1 if direction == "LowerIsBetter" else -1
    usable = (item for item in rows if item.entries and not item.expired)
    return tuple(sorted(usable, key=lambda item: (sign * item.mean, item.cluster)))


def _described(scorer: ScorerOverview) -> dict[str, str | None]:
    fields = ("display_name", "description", "unit", "direction")
    return {"scorer": scorer.name, **{field: getattr(scorer, field) for field in fields}}
