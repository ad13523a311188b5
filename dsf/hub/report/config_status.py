"""The status of the DynamicScoringConfig, and what statuses have in common: conditions, wording."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsf.api import conditions
from dsf.api.conditions import Condition
from dsf.api.untrusted_text import InvalidInput, counted, joined
from dsf.hub.snapshot.summaries_work import LIMIT_BYTES, is_too_large
from dsf.kube.port import Object

SHOWN_ITEMS = 5
"""Items of a list that a message names; it counts the others."""


def first_items(items: Sequence[str], *, of: int | None = None) -> str:
    """Return the first items separated by semicolons, and how many more there are.

    `of` is the number of all items, where `items` are only the first of them.
    """
    return joined(items, SHOWN_ITEMS, separator="; ", of=of or 0)


def works_of(clusters: int) -> str:
    """Return what carries summaries to that many managed clusters."""
    return f"ManifestWork{'' if clusters == 1 else 's'} of {counted(clusters, 'managed cluster')}"


@dataclass(frozen=True, slots=True)
class FleetProgress:
    """How far the distribution to the fleet has come.

    `scorers` and `clusters` count what is desired; `no_clusters_because` says why `clusters` is 0.
    `lagging` names the clusters whose work is not as desired yet. `refusals` says by cluster why
    the API server refused a write. `sizes` are the bytes of the works that are near OCM's limit.
    """

    scorers: int
    clusters: int
    no_clusters_because: str = ""
    lagging: frozenset[str] = frozenset()
    refusals: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def config_status(
    config: Object, progress: FleetProgress, unmatched: Sequence[str], *, now: str
) -> dict[str, Any]:
    """Return the desired status of the DynamicScoringConfig."""
    reported = [_ready(progress), _masks_matched(unmatched), _within_limit(progress.sizes)]
    return {
        "scorers": progress.scorers,
        "clusters": progress.clusters - len(progress.lagging),
        "desiredClusters": progress.clusters,
        **status_conditions(config, reported, now=now),
    }


def invalid_config_status(config: Object, invalid: InvalidInput, *, now: str) -> dict[str, Any]:
    """Return the status of a DynamicScoringConfig that can't be read: all works stay."""
    message = f"{invalid.message}; what was distributed before stays"
    ready = Condition("Ready", "False", invalid.reason, message)
    return status_conditions(config, [ready], now=now)


def status_conditions(obj: Object, reported: Iterable[Condition], *, now: str) -> dict[str, Any]:
    """Return the status fields `observedGeneration` and `conditions`; `now` is RFC 3339."""
    generation = obj["metadata"].get("generation")
    merged = conditions.merged(
        conditions.conditions_of(obj), reported, now=now, generation=generation
    )
    return {"observedGeneration": generation, "conditions": merged}


def _ready(progress: FleetProgress) -> Condition:
    refused = sorted(progress.lagging & progress.refusals.keys())
    if not progress.clusters:
        return Condition("Ready", "False", "NoClusters", progress.no_clusters_because)
    if refused:
        message = first_items([f"{cluster}: {progress.refusals[cluster]}" for cluster in refused])
        return Condition("Ready", "False", "WriteRefused", message)
    if any(map(is_too_large, progress.sizes.values())):
        return Condition("Ready", "False", "TooLarge", "see the condition WithinLimit")
    scorers = counted(progress.scorers, "scorer")
    if progress.lagging:
        message = f"{scorers} on the way to {counted(progress.clusters, 'managed cluster')}"
        return Condition("Ready", "False", "Distributing", message)
    message = f"{scorers} in the {works_of(progress.clusters)}"
    return Condition("Ready", "True", "Distributed", message)


def _masks_matched(unmatched: Sequence[str]) -> Condition:
    if unmatched:
        return Condition("MasksMatched", "False", "NothingMatched", first_items(unmatched))
    return Condition("MasksMatched", "True", "AllMatched", "every mask and override matches")


def _within_limit(sizes: Mapping[str, int]) -> Condition:
    """Return the condition WithinLimit: OCM refuses a ManifestWork that is too large."""
    if not sizes:
        message = "every ManifestWork is well below OCM's size limit"
        return Condition("WithinLimit", "True", "WithinLimit", message)
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    largest = first_items([f"{cluster}: {size // 1024} KiB" for cluster, size in ordered])
    over = is_too_large(ordered[0][1])
    message = (
        f"OCM accepts ManifestWorks of up to {LIMIT_BYTES // 1024} KiB;"
        f" {'not written' if over else 'close to it'}: {largest}."
        " Mask scores, shorten queries, or remove scorers"
    )
    return Condition("WithinLimit", "False", "TooLarge" if over else "NearLimit", message)


def misplaced_status(scorer: Object, hub_namespace: str, *, now: str) -> dict[str, Any]:
    """Return the status fields that say where a DynamicScorer has to be; `now` is RFC 3339."""
    message = (
        f"the hub controller uses only the DynamicScorers of namespace {hub_namespace}: create this"
        " one there, and delete it here"
    )
    return status_conditions(
        scorer, [Condition("Ready", "False", "OtherNamespace", message)], now=now
    )
