"""The metrics of an agent, and the latest scores for as long as they count.

Each help text is the row of a metric in docs/reference/metrics.md.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dsf.agent.score.expiry import EXPIRE, Policy, policy_in_force
from dsf.agent.score.result_rules import MetricSample
from dsf.agent.wire.http_answer import display_url
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.api.scoring.score_conditions import LABEL_LIMIT, Rule, TrackRecord

LABELS = tuple("ds_score_name" if name == "scoreName" else f"ds_{name}" for name in PLACEHOLDERS)


@dataclass(frozen=True, slots=True)
class _ScoreSamples:
    samples: tuple[MetricSample, ...]
    valid_until: float
    rule: OnFailure

    def policy(self, now: float) -> Policy | None:
        return policy_in_force(self.rule, now - self.valid_until)

    def values(self, policy: Policy | None) -> Iterator[tuple[MetricSample, float]]:
        for sample in () if policy == "Expire" else self.samples:
            yield sample, float(self.rule.value or 0) if policy == "Value" else sample.score


class LatestScores(Collector):
    """The samples of each score's last good round; after they expire, `onFailure` decides.

    `dynamic_score{ds_cluster, ds_node, …}` and `dynamic_scoring_on_failure{score_name, policy}`.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._latest: dict[str, _ScoreSamples] = {}

    def replace(
        self,
        score_name: str,
        samples: tuple[MetricSample, ...],
        valid_until: float,
        rule: OnFailure = EXPIRE,
    ) -> None:
        """Replace all samples of a score; `valid_until` is in unix seconds."""
        self._latest[score_name] = _ScoreSamples(samples, valid_until, rule)

    def set_rule(self, score_name: str, rule: OnFailure) -> None:
        """Set the rule that applies when the samples of a score expire."""
        if latest := self._latest.get(score_name):
            self._latest[score_name] = replace(latest, rule=rule)

    def remove(self, score_name: str) -> None:
        """Forget a score."""
        self._latest.pop(score_name, None)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the metric families."""
        score = GaugeMetricFamily(
            "dynamic_score", "The latest scores, until they expire.", labels=LABELS
        )
        expired = GaugeMetricFamily(
            "dynamic_scoring_on_failure",
            "1 while the last good scores have expired, with the policy in force.",
            labels=("score_name", "policy"),
        )
        now = self._now()
        for name, latest in list(self._latest.items()):
            policy = latest.policy(now)
            for sample, value in latest.values(policy):
                score.add_metric(sample.labels, value)
            if policy:
                expired.add_metric((name, policy), 1)
        yield from (score, expired)


SUCCESS = "success"

_STAGES = {
    "fetch": "reading the source",
    "perform": "waiting for the scoring API",
    "send": "publishing to the hub",
}
M = TypeVar("M", Counter, Gauge, Histogram)

_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 120)


class AgentMetrics:
    """The metrics of an agent, most with the label `score_name`; `now` returns unix seconds."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self._registry = registry
        self._now = now
        self._configured_at: float | None = None
        self._by_score = list[Counter | Gauge | Histogram]()
        self.scores = LatestScores(now)
        registry.register(self.scores)
        self._requests = self._counter(
            "requests",
            "Rounds by outcome: success, source_failed, scoring_failed,"
            " publish_failed, agent_failed.",
            "status",
        )
        self._seconds = {
            stage: self._counter(f"{stage}_seconds", f"Seconds spent {doing}.")
            for stage, doing in _STAGES.items()
        }
        self._stages = self._histogram(
            "stage_seconds",
            "Seconds of each stage of a round: fetch, perform (the scoring API), send (the hub).",
            "stage",
        )
        self._succeeded = self._gauge(
            "last_success_timestamp_seconds",
            "When the last good round ended, in unix seconds.",
            "score_name",
        )
        self._adjusted = self._counter(
            "adjusted",
            "Results that a rule changed or dropped;"
            " docs/reference/results-to-entries.md lists the rules.",
            "rule",
        )
        self.broken = self._counter(
            "broken", "Unexpected exceptions in a round or its publishing, which are bugs."
        )
        self.source_failures = self._counter(
            "source_failures", "Rounds that failed at one of several sources.", "source"
        )
        self._default = self._gauge(
            "default_score", "The default score while it is published; else absent.", "score_name"
        )
        self._writes = self._counter("hub_writes", "API writes made on the hub.")
        self._saved = self._counter("hub_writes_saved", "Rounds that needed no write on the hub.")
        self._calls = self._counter(
            "api_requests",
            "Calls of a scoring API by HTTP status, or reason of failure.",
            "scoring_api",
            "code",
        )
        self._latency = self._histogram(
            "api_request_seconds", "Latency of scoring APIs.", "scoring_api"
        )
        self.probes = self._counter(
            "health_probes", "Probes of the API of a paused scorer: healthy, unhealthy.", "result"
        )
        self._paused = self._gauge(
            "paused_until_timestamp_seconds",
            "When the pause after failures ends, in unix seconds; absent without a pause.",
            "score_name",
        )
        self._trust = self._gauge(
            "trust",
            "How far forecasts beat the last value, from 0 to 1; absent while unknown.",
            "score_name",
        )
        self._error = self._gauge(
            "forecast_error_ratio",
            "Error of forecasts divided by that of the last value; absent while unknown.",
            "score_name",
        )
        self._record = self._gauge(
            "forecast_evidence_horizons",
            "Evidence on which trust rests; below 2 horizons it is unknown.",
            "score_name",
        )
        self._forecasts = self._counter(
            "forecasts",
            "Forecasts of entries: judged, gap (no truth); rounds: clock_set"
            " (dropped, because the time of day was set).",
            "outcome",
        )
        self.truths = self._counter(
            "truth_reads",
            "Reads of the truth of forecasts: success, or the reason of a failed stage.",
            "status",
        )
        self.held = self._gauge(
            "answers_in_flight_bytes",
            "Bytes of answers that all rounds hold; a round with less than 64 KiB counts as none.",
        )
        self.pushes = self._counter(
            "pushes",
            "With --push-bind-address: pushes by outcome: Accepted, or why they were refused;"
            " of no score if they name no scorer of this cluster.",
            "outcome",
        )
        self.push_seconds = self._histogram(
            "push_seconds", "Seconds from an accepted push until its scores are published."
        )
        self.refused = Counter(
            "dynamic_scoring_config_refused",
            "Invalid summaries that were ignored.",
            registry=registry,
        )
        self._scorers = self._gauge("scorers", "Scorers configured.")

    def round_finished(self, score_name: str, status: str, seconds: Mapping[str, float]) -> None:
        """Count a round; `seconds` has the duration of each stage that ran."""
        self._requests.labels(score_name, status).inc()
        for stage, spent in seconds.items():
            self._seconds[stage].labels(score_name).inc(spent)
            self._stages.labels(score_name, stage).observe(spent)
        if status == SUCCESS:
            self._succeeded.labels(score_name).set(self._now())

    def default_score(self, score_name: str, value: int | None) -> None:
        """Replace the default score that is published; None if none is."""
        if value is None:
            self._default.remove_by_labels({"score_name": score_name})
        else:
            self._default.labels(score_name).set(value)

    def adjusted(self, score_name: str, counts: Mapping[Rule, int]) -> None:
        """Count the results of a round that each rule changed or dropped."""
        for rule, count in counts.items():
            self._adjusted.labels(score_name, rule).inc(count)

    def published(self, score_name: str, writes: int, *, saved: bool) -> None:
        """Count the writes of a round; `saved` if it needed none."""
        self._writes.labels(score_name).inc(writes)
        self._saved.labels(score_name).inc(saved)

    def api_called(self, score_name: str, endpoint: str, code: str, seconds: float) -> None:
        """Count a call of a scoring API; `code` is its status, or its reason of failure."""
        scoring_api = display_url(endpoint)[:LABEL_LIMIT]
        self._calls.labels(score_name, scoring_api, code).inc()
        self._latency.labels(score_name, scoring_api).observe(seconds)

    def paused(self, until: Mapping[str, float]) -> None:
        """Replace the end of each pause after failures, in unix seconds by score name."""
        self._paused.clear()
        for score_name, end in until.items():
            self._paused.labels(score_name).set(end)

    def trust(self, score_name: str, record: TrackRecord) -> None:
        """Replace how far a scorer can be trusted."""
        self._record.labels(score_name).set(record.evidence)
        if record.trust is None:
            for gauge in (self._trust, self._error):
                gauge.remove_by_labels({"score_name": score_name})
        else:
            self._trust.labels(score_name).set(record.trust)
            self._error.labels(score_name).set(record.error)

    def forecasts(self, score_name: str, **outcomes: int) -> None:
        """Count forecasts by what became of them."""
        for outcome, count in outcomes.items():
            self._forecasts.labels(score_name, outcome).inc(count)

    def configured(self, scorers: int) -> None:
        """Record that valid summaries of that many scorers were read."""
        if self._configured_at is None:
            self._gauge(
                "config_age_seconds", "Seconds since valid summaries were read."
            ).set_function(lambda: max(0.0, self._now() - (self._configured_at or 0.0)))
        self._configured_at = self._now()
        self._scorers.set(scorers)

    def remove(self, score_name: str) -> None:
        """Remove all series of a score."""
        self.scores.remove(score_name)
        for metric in self._by_score:
            metric.remove_by_labels({"score_name": score_name})

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._of_scores(
            Counter(
                f"dynamic_scoring_{name}", text, ["score_name", *labels], registry=self._registry
            )
        )

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        gauge = Gauge(f"dynamic_scoring_{name}", text, labels, registry=self._registry)
        return self._of_scores(gauge) if "score_name" in labels else gauge

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return self._of_scores(
            Histogram(
                f"dynamic_scoring_{name}",
                text,
                ["score_name", *labels],
                buckets=_BUCKETS,
                registry=self._registry,
            )
        )

    def _of_scores(self, metric: M) -> M:
        self._by_score.append(metric)
        return metric
