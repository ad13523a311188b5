from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from dsf.agent.metrics import SUCCESS, AgentMetrics
from dsf.agent.score.result_rules import MetricSample
from dsf.api.crd.score_rules import OnFailure

HOLD = OnFailure(policy="Hold", hold_seconds=60)
VALUE = OnFailure(policy="Value", value=-3)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sample(score: float, app: str, score_name: str = "my_score") -> MetricSample:
    return MetricSample(("cluster1", "", "", "", app, "", "", 'me"ta\n', score_name), score)


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


def test_what_rounds_rules_and_the_publisher_did_is_counted() -> None:
    registry, metrics, clock = build()
    metrics.round_finished("my_score", SUCCESS, {"fetch": 0.5, "perform": 1.5, "send": 0.25})
    clock.now = 1500
    metrics.round_finished("my_score", "source_failed", {"fetch": 4})
    for counts in ({"NotFinite": 2, "EntryCut": 5}, {"NotFinite": 1}):
        metrics.adjusted("my_score", counts)  # type: ignore[arg-type]  # names of rules
    metrics.published("my_score", 2, saved=False)
    metrics.published("my_score", 0, saved=True)
    expected: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {
        ("requests_total", (("status", "success"),)): 1,
        ("requests_total", (("status", "source_failed"),)): 1,
        ("fetch_seconds_total", ()): 4.5,
        ("perform_seconds_total", ()): 1.5,
        ("send_seconds_total", ()): 0.25,
        ("stage_seconds_count", (("stage", "fetch"),)): 2,
        ("stage_seconds_sum", (("stage", "fetch"),)): 4.5,
        ("stage_seconds_bucket", (("stage", "fetch"), ("le", "1.0"))): 1,
        ("last_success_timestamp_seconds", ()): 1000,
        ("adjusted_total", (("rule", "NotFinite"),)): 3,
        ("adjusted_total", (("rule", "EntryCut"),)): 5,
        ("hub_writes_total", ()): 2,
        ("hub_writes_saved_total", ()): 1,
    }
    found = {
        (name, labels): registry.get_sample_value(
            f"dynamic_scoring_{name}", {"score_name": "my_score", **dict(labels)}
        )
        for name, labels in expected
    }
    assert found == expected


def test_a_removed_score_leaves_nothing() -> None:
    registry, metrics, _ = build()
    metrics.scores.replace("my_score", (sample(1, "a"),), 2000)
    metrics.round_finished("my_score", SUCCESS, {"fetch": 1})
    metrics.round_finished("other", SUCCESS, {"fetch": 1})
    metrics.remove("my_score")
    text = generate_latest(registry).decode()
    assert "my_score" not in text
    assert 'score_name="other"' in text
    metrics.remove("never seen")


def test_everything_can_be_read_as_openmetrics() -> None:
    registry, metrics, _ = build()
    strange = ('a"b', "back\\slash", "line\nbreak", "\x00", "日本", "")
    metrics.scores.replace("my_score", tuple(sample(1.5, app) for app in strange), 2000)
    metrics.scores.replace("old_score", (sample(1, "a", "old_score"),), 500, VALUE)
    metrics.round_finished("my_score", SUCCESS, {"fetch": 0.5, "perform": 1.5, "send": 0.25})
    metrics.adjusted("my_score", {"NotFinite": 2})
    metrics.published("my_score", 2, saved=False)
    metrics.api_called("my_score", "http://scorer.example/scoring", "200", 0.2)
    metrics.configured(1)
    encode, content_type = choose_encoder("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = list(openmetrics(encode(registry).decode()))
    read = [one for family in families for one in family.samples if one.name == "dynamic_score"]
    found = {one.labels["ds_app"]: one.value for one in read}
    assert found == dict.fromkeys(strange, 1.5) | {"a": -3}
    assert {family.name for family in families} >= {
        "dynamic_scoring_stage_seconds",
        "dynamic_scoring_api_requests",
        "dynamic_scoring_on_failure",
        "dynamic_scoring_config_age_seconds",
    }


def test_expired_scores_are_held_or_replaced_as_declared() -> None:
    registry, metrics, clock = build()
    metrics.scores.replace("my_score", (sample(1.5, "a"),), 1090, HOLD)
    for now, found, policy in (
        (1089, {"a": 1.5}, None),
        (1090, {"a": 1.5}, "Hold"),
        (1149, {"a": 1.5}, "Hold"),
        (1150, {}, "Expire"),
    ):
        clock.now = now
        assert scores(registry) == found
        expected = {"score_name": "my_score", "policy": policy} if policy else {}
        assert in_force(registry) == ([expected] if expected else [])
    metrics.scores.set_rule("my_score", VALUE)
    assert scores(registry) == {"a": -3}
    assert in_force(registry) == [{"score_name": "my_score", "policy": "Value"}]
    metrics.scores.set_rule("never seen", VALUE)


def in_force(registry: CollectorRegistry) -> list[dict[str, str]]:
    return [
        one.labels
        for family in registry.collect()
        for one in family.samples
        if one.name == "dynamic_scoring_on_failure" and one.value == 1
    ]


def test_calls_of_scoring_apis_are_counted_by_status_and_show_no_credentials() -> None:
    registry, metrics, _ = build()
    url = "http://user:pass@scorer.example:8000/scoring?token=x"
    metrics.api_called("my_score", url, "200", 0.2)
    metrics.api_called("my_score", url, "429", 0.1)
    metrics.api_called("my_score", url, "DeadlineExceeded", 10)
    labels = {"score_name": "my_score", "scoring_api": "http://scorer.example:8000/scoring"}
    for code in ("200", "429", "DeadlineExceeded"):
        name = "dynamic_scoring_api_requests_total"
        assert registry.get_sample_value(name, {**labels, "code": code}) == 1
    assert registry.get_sample_value("dynamic_scoring_api_request_seconds_count", labels) == 3
    metrics.remove("my_score")
    assert "my_score" not in generate_latest(registry).decode()


def test_the_age_of_the_config_is_told_once_there_is_one() -> None:
    registry, metrics, clock = build()
    name = "dynamic_scoring_config_age_seconds"
    metrics.refused.inc()
    assert registry.get_sample_value(name) is None
    metrics.configured(3)
    clock.now = 1060
    assert registry.get_sample_value(name) == 60
    metrics.configured(2)
    assert registry.get_sample_value(name) == 0
    assert registry.get_sample_value("dynamic_scoring_scorers") == 2
    assert registry.get_sample_value("dynamic_scoring_config_refused_total") == 1
