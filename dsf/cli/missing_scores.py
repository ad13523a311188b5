"""Why a hub has no scores: what its controller reports of scorers, and of their distribution."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from dsf.api.conditions import conditions_of, find
from dsf.api.names import SCORING_CONFIG
from dsf.api.scoring.placement_scores import published_score
from dsf.api.untrusted_text import UntrustedName, UntrustedText, counted
from dsf.kube.port import Object

MOST_FAILURES = 5
"""Failing managed clusters of one scorer that are named; the others are counted."""

NO_SCORER = "the hub has no DynamicScorer: `dsf scorer register` writes that of a scoring API"


def why_missing(
    scorers: Iterable[Object],
    config: Object | None,
    scored: Collection[str],
    *,
    clusters: Collection[str] = (),
    scores: Collection[str] = (),
) -> Iterator[str]:
    """Yield on which clusters each scorer fails, and why scores are not there, a line for each.

    `scored`: names of the AddOnPlacementScores with entries. `clusters` and `scores` are the names
    that were asked for, empty for all; a scorer may be named instead of its score.
    """
    silent = False
    for scorer in sorted(scorers, key=_name):
        name, score = UntrustedName(_name(scorer)), published_score(scorer)
        if scores and not {_name(scorer), score} & {*scores}:
            continue
        failing = [
            item
            for item in (scorer.get("status") or {}).get("failingClusters") or ()
            if not clusters or item.get("name") in clusters
        ]
        yield from (f"{name} fails on {_failure(item)}" for item in failing[:MOST_FAILURES])
        if more := len(failing[MOST_FAILURES:]):
            yield f"{name} fails on {counted(more, 'more managed cluster')}"
        if not failing and score not in scored:
            silent = True
            yield f"{name} has no scores: {_reason(scorer)}"
    ready = find(conditions_of(config or {}), "Ready") or {}
    if silent and ready.get("status") == "False":
        yield f"DynamicScoringConfig {SCORING_CONFIG}: {ready.get('reason')}: {_message(ready)}"


def _name(scorer: Object) -> str:
    return str(scorer["metadata"]["name"])


def _failure(item: Mapping[str, Any]) -> str:
    cluster, reason = (UntrustedName(item.get(field) or "") for field in ("name", "reason"))
    return f"{cluster}: {reason}: {UntrustedText(item.get('message') or '')}"


def _reason(scorer: Object) -> str:
    """Return the condition that has the cause."""
    conditions = conditions_of(scorer)
    ready, scoring = (find(conditions, name) for name in ("Ready", "Scoring"))
    if ready is None:
        return "the hub controller has not reported on it yet; does it run?"
    told = ready if ready.get("status") == "False" or scoring is None else scoring
    return f"{told.get('reason')}: {_message(told)}"


def _message(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or "it does not say more")
