"""The latest scores as metrics, for as long as they are valid or `scoring.onFailure` keeps them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dsf.agent.score.expiry import EXPIRE, Policy, policy_in_force
from dsf.agent.score.result_rules import MetricSample
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.dimension_format import PLACEHOLDERS

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
