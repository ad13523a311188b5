from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dsf.agent.metrics import SUCCESS, AgentMetrics
from dsf.agent.scores import Sample


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sample(score: float, app: str, score_name: str = "my_score") -> Sample:
    return Sample(("cluster1", "", "", "", app, "", "", 'me"ta\n', score_name), score)


def build() -> tuple[CollectorRegistry, AgentMetrics, Clock]:
    registry, clock = CollectorRegistry(), Clock()
    return registry, AgentMetrics(registry, clock), clock


def scores(registry: CollectorRegistry) -> dict[str, float]:
    text = generate_latest(registry).decode()
    return {
        one.labels["ds_app"]: one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == "dynamic_score"
    }


def test_a_score_has_the_labels_of_the_contract() -> None:
    registry, metrics, _ = build()
    metrics.scores.replace("my_score", (sample(12.5, "app01"),), 2000)
    (found,) = (
        one
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for one in family.samples
        if one.name == "dynamic_score"
    )
    assert found.value == 12.5
    assert found.labels == {
        "ds_cluster": "cluster1",
        "ds_node": "",
        "ds_device": "",
        "ds_namespace": "",
        "ds_app": "app01",
        "ds_pod": "",
        "ds_container": "",
        "ds_meta": 'me"ta\n',
        "ds_score_name": "my_score",
    }


def test_a_round_replaces_all_samples_of_its_score() -> None:
    registry, metrics, _ = build()
    metrics.scores.replace("my_score", (sample(1, "a"), sample(2, "b")), 2000)
    metrics.scores.replace("other", (sample(9, "z", "other"),), 2000)
    metrics.scores.replace("my_score", (sample(3, "b"),), 2000)
    assert scores(registry) == {"b": 3, "z": 9}


def test_scores_that_nobody_renews_expire() -> None:
    registry, metrics, clock = build()
    metrics.scores.replace("my_score", (sample(1, "a"),), 1090)
    clock.now = 1089
    assert scores(registry) == {"a": 1}
    clock.now = 1090
    assert scores(registry) == {}


def test_rounds_are_counted_with_their_times() -> None:
    registry, metrics, _ = build()
    metrics.finished("my_score", SUCCESS, {"fetch": 0.5, "perform": 1.5, "send": 0.25})
    metrics.finished("my_score", "source_failed", {"fetch": 0.5})

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"score_name": "my_score", **labels})

    assert value("dynamic_scoring_requests_total", status="success") == 1
    assert value("dynamic_scoring_requests_total", status="source_failed") == 1
    assert value("dynamic_scoring_fetch_seconds_total") == 1.0
    assert value("dynamic_scoring_perform_seconds_total") == 1.5
    assert value("dynamic_scoring_send_seconds_total") == 0.25


def test_a_removed_score_leaves_nothing() -> None:
    registry, metrics, _ = build()
    metrics.scores.replace("my_score", (sample(1, "a"),), 2000)
    metrics.finished("my_score", SUCCESS, {"fetch": 1})
    metrics.finished("other", SUCCESS, {"fetch": 1})
    metrics.remove("my_score")
    text = generate_latest(registry).decode()
    assert "my_score" not in text
    assert 'score_name="other"' in text
    metrics.remove("never seen")


def test_openmetrics_can_be_written() -> None:
    registry, metrics, _ = build()
    metrics.scores.replace("my_score", (sample(1, "a"),), 2000)
    encode, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
    assert encode(registry).endswith(b"# EOF\n")
