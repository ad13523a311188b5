"""The latest scores as metrics, each for as long as it counts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dsf.agent.score.expiry import EXPIRE
from dsf.agent.score.result_rules import MetricSample
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.dimension_format import PLACEHOLDERS

LABELS = tuple("ds_score_name" if name == "scoreName" else f"ds_{name}" for name in PLACEHOLDERS)


@dataclass(frozen=True, slots=True)
class _ScoreSamples:
    samples: tuple[MetricSample, ...]
    valid_until: float
    rule: OnFailure

    def policy(self, now: float) -> str | None:
        """Return the policy in force for scores that have expired; None while they are valid."""
        if now < self.valid_until:
            return None
        held = self.rule.policy == "Hold" and now < self.valid_until + (self.rule.hold_seconds or 0)
        return self.rule.policy if held or self.rule.policy == "Value" else "Expire"

    def counting(self, now: float) -> Iterator[tuple[MetricSample, float]]:
        policy = self.policy(now)
        for sample in () if policy == "Expire" else self.samples:
            replaced = policy == "Value" and self.rule.value is not None
            yield sample, float(self.rule.value or 0) if replaced else sample.score


class LatestScores(Collector):
    """Of each score the samples of its last good round; when they expire, `onFailure` decides.

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
        """Replace all samples of a score at once; they are valid until then (unix seconds)."""
        self._latest[score_name] = _ScoreSamples(samples, valid_until, rule)

    def ruled(self, score_name: str, rule: OnFailure) -> None:
        """Have another rule decide what becomes of a score's samples."""
        if latest := self._latest.get(score_name):
            self._latest[score_name] = replace(latest, rule=rule)

    def remove(self, score_name: str) -> None:
        """Forget a score."""
        self._latest.pop(score_name, None)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the metric families."""
        score = GaugeMetricFamily("dynamic_score", "Latest score.", labels=LABELS)
        expired = GaugeMetricFamily(
            "dynamic_scoring_on_failure",
            "1 while the last good scores have expired, with the policy in force.",
            labels=("score_name", "policy"),
        )
        now = self._now()
        for name, latest in list(self._latest.items()):
            for sample, value in latest.counting(now):
                score.add_metric(sample.labels, value)
            if policy := latest.policy(now):
                expired.add_metric((name, policy), 1)
        yield from (score, expired)
