"""DynamicScorers as people see them: what a score means, whether it comes, and where it fails."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.score_meaning import Direction
from dsf.api.plural import counted
from dsf.api.scoring.placement_scores import format_for_apps, published_meaning, published_score
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.base import Name, ResultPart, Text


class ScorerFailure(ResultPart):
    """A managed cluster on which a scorer fails."""

    cluster: Name
    reason: Name
    message: Text


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
    dimension_format: Text = ""
    interval_seconds: int | None = None
    health: Annotated[Name, Field(description="Active, Inactive or Unknown.")]
    reason: Annotated[Name, Field(description="Reason of the condition Ready.")]
    message: Text = ""
    clusters: Annotated[
        dict[Name, int], Field(description="Managed clusters: desired, distributed, scoring, ...")
    ]
    failing: tuple[ScorerFailure, ...] = ()

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
    params = _stated(scorer, "scoring").get("params") or {}
    meaning = published_meaning(scorer)
    return ScorerOverview(
        name=name_of(scorer),
        namespace=str(scorer["metadata"].get("namespace") or ""),
        score=published_score(scorer),
        display_name=meaning.display_name or "",
        description=_text(scorer, "description"),
        unit=meaning.unit or "",
        direction=meaning.direction,
        dimension_format=format_for_apps(scorer),
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
            )
            for item in status.get("failingClusters") or ()
        ),
    )


def _stated(scorer: Object, field: str) -> Mapping[str, Any]:
    """Return an object of the configuration in use."""
    synced = (scorer.get("status") or {}).get("lastSyncedConfig") or {}
    found = synced.get(field) or (scorer.get("spec") or {}).get(field)
    return found if isinstance(found, Mapping) else {}


def _text(scorer: Object, field: str) -> str:
    """Return a text of the configuration in use; empty if nothing states it."""
    synced = (scorer.get("status") or {}).get("lastSyncedConfig") or {}
    return str(synced.get(field) or (scorer.get("spec") or {}).get(field) or "")


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None
