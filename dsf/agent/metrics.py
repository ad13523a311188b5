"""The metrics of an agent.

dynamic_score{ds_cluster, ds_node, ...}                          the latest scores, not rounded
dynamic_scoring_requests_total{score_name, status}               rounds by outcome: success,
                                                                 source_failed, scoring_failed,
                                                                 publish_failed
dynamic_scoring_fetch_seconds_total{score_name}                  time spent on the source
dynamic_scoring_perform_seconds_total{score_name}                time spent on the scoring API
dynamic_scoring_send_seconds_total{score_name}                   time spent on the hub
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dsf.agent.scores import Sample
from dsf.api.dimension import PLACEHOLDERS

SUCCESS = "success"

LABELS = tuple("ds_score_name" if name == "scoreName" else f"ds_{name}" for name in PLACEHOLDERS)


@dataclass(frozen=True, slots=True)
class _Series:
    samples: tuple[Sample, ...]
    valid_until: float


class LatestScores(Collector):
    """`dynamic_score`: of each score the samples of its last good round, until they expire."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._series: dict[str, _Series] = {}

    def replace(self, score_name: str, samples: tuple[Sample, ...], valid_until: float) -> None:
        """Replace all samples of a score at once; they go at `valid_until` (unix seconds)."""
        self._series[score_name] = _Series(samples, valid_until)

    def remove(self, score_name: str) -> None:
        """Forget a score."""
        self._series.pop(score_name, None)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the one metric family."""
        family = GaugeMetricFamily("dynamic_score", "Latest score.", labels=LABELS)
        now = self._now()
        for series in list(self._series.values()):
            for sample in series.samples if series.valid_until > now else ():
                family.add_metric(sample.labels, sample.score)
        yield family


class AgentMetrics:
    """What an agent counts; `now` returns unix seconds."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self.scores = LatestScores(now)
        registry.register(self.scores)
        self._requests = Counter(
            "dynamic_scoring_requests",
            "Rounds by their outcome: success, or the stage that failed.",
            ["score_name", "status"],
            registry=registry,
        )
        self._seconds = {
            stage: Counter(
                f"dynamic_scoring_{stage}_seconds",
                f"Seconds spent {doing}.",
                ["score_name"],
                registry=registry,
            )
            for stage, doing in (
                ("fetch", "reading the source"),
                ("perform", "waiting for the scoring API"),
                ("send", "publishing to the hub"),
            )
        }

    def finished(self, score_name: str, status: str, seconds: dict[str, float]) -> None:
        """Count a round; `seconds` has the time of each stage that ran."""
        self._requests.labels(score_name, status).inc()
        for stage, spent in seconds.items():
            self._seconds[stage].labels(score_name).inc(spent)

    def remove(self, score_name: str) -> None:
        """Forget everything about a score."""
        self.scores.remove(score_name)
        for counter in (self._requests, *self._seconds.values()):
            counter.remove_by_labels({"score_name": score_name})
