"""How rounds of a demo's scorers went since its start, from the metrics of its agents."""

import math
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from statistics import median

from prometheus_client import CollectorRegistry

FailedRounds = dict[tuple[str, str], float]
"""By score and cluster."""


def round_curves(
    registries: Mapping[str, CollectorRegistry], time: float
) -> tuple[dict[tuple[str, str], float], FailedRounds]:
    """Return values by score and curve at a time in unix seconds, and failed rounds.

    `registries`: the metrics of agents by cluster.
    """
    failed, rounds = defaultdict[tuple[str, str], float](float), defaultdict[str, float](float)
    calls = defaultdict[str, defaultdict[float, float]](lambda: defaultdict(float))
    found, ratios = dict[tuple[str, str], float](), defaultdict[str, list[float]](list)
    for cluster, registry in registries.items():
        for one in (sample for family in registry.collect() for sample in family.samples):
            score, value = one.labels.get("score_name", ""), one.value
            match one.name.removeprefix("dynamic_scoring_"):
                case "requests_total":
                    rounds[score] += value
                    failed[score, cluster] += value * (one.labels["status"] != "success")
                case "api_request_seconds_bucket":
                    calls[score][float(one.labels["le"])] += value
                case "last_success_timestamp_seconds":
                    found[score, "age"] = max(found.get((score, "age"), 0.0), time - value)
                case "forecast_error_ratio":
                    ratios[score].append(value)
    for score in (name for name in rounds if rounds[name]):
        lost = sum(count for key, count in failed.items() if key[0] == score)
        found[score, "failed"] = lost / rounds[score]
        found[score, "latency"] = _latency(calls[score])
    found |= {(score, "skill"): 1 - median(own) for score, own in ratios.items()}
    return found, {key: count for key, count in failed.items() if count}


def _latency(calls: Mapping[float, float]) -> float:
    """Return the seconds in which 90% of calls end, of cumulative buckets; NaN: unknown."""
    wanted = 0.9 * max(calls.values(), default=0.0)
    for lower, upper in pairwise([0.0, *sorted(calls)]):
        if calls[upper] >= wanted > 0 and math.isfinite(upper):
            below = calls.get(lower, 0.0)
            return lower + (upper - lower) * (wanted - below) / (calls[upper] - below or 1.0)
    return math.nan
