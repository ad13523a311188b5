"""The metrics of received OTLP data points."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dsf.agent.otlp.memory.received_metrics import ReceivedMetrics


class OtlpMetrics(Collector):
    """Reads the counts of received metrics at each scrape."""

    def __init__(self, memory: ReceivedMetrics) -> None:
        self._memory = memory

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families."""
        points = CounterMetricFamily(
            "dynamic_scoring_otlp_points",
            "With --otlp: points that a query selects: taken, or why they were refused.",
            labels=["outcome"],
        )
        for outcome, count in sorted(self._memory.outcomes.items()):
            points.add_metric([outcome], count)
        yield points
        series, samples = self._memory.held
        yield GaugeMetricFamily(
            "dynamic_scoring_otlp_series", "With --otlp: series in memory.", value=series
        )
        yield GaugeMetricFamily(
            "dynamic_scoring_otlp_samples", "With --otlp: samples in memory.", value=samples
        )
