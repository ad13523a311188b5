"""A DynamicScorer and its API's config resolve to one summary."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.crd.score_meaning import DeclaredMeaning
from dsf.api.crd.score_rules import DefaultScore, OnFailure
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.assess.config_resolution import ConfigConflict, Resolved, resolve
from tests.dsf.hub.builders import api_config, scorer
from tests.repository import ROOT

OWN = {
    "source": {
        "type": "prometheus",
        "host": "http://thanos:9090/",
        "path": "api/v1/query",
        "params": {"query": "up == 1", "range": 0, "step": 15},
        "auth": {"tokenSecretRef": {"name": "prom", "key": "token"}},
    },
    "scoring": {
        "host": "http://other:8000",
        "path": "/own",
        "params": {"name": "own_score", "interval": 10},
        "auth": {"tokenSecretRef": {"name": "api", "key": "bearer"}},
    },
}


BAD_CLIENT = {"oauth2": {"tokenURL": "http://[sso/t", "clientSecretRef": {"name": "c"}}}


def resolved(config: dict[str, Any] | None = None, **spec: Any) -> Resolved:
    outcome = attempt(config, **spec)
    assert isinstance(outcome, Resolved), outcome
    return outcome


def attempt(config: dict[str, Any] | None = None, **spec: Any) -> Resolved | InvalidInput:
    return resolve(
        "cpu",
        DynamicScorerSpec.model_validate(scorer(**spec)["spec"]),
        None if config is None else ScorerConfig.model_validate(config),
    )


def test_full_takes_what_the_api_says() -> None:
    outcome = resolved(api_config(), location="Internal")
    assert outcome.conflicts == ()
    assert outcome.summary.model_dump(by_alias=True) == {
        "name": "cpu",
        "scoreName": "cpu_score",
        "sourceType": "Prometheus",
        "sourceEndpoint": "http://prometheus.monitoring.svc:9090/api/v1/query_range",
        "sourceEndpointAuthName": "",
        "sourceEndpointAuthKey": "",
        "sourceQuery": "up",
        "sourceRange": 3600,
        "sourceStep": 30,
        "scoringEndpoint": "http://cpu.scorers.svc:8000/scoring",
        "scoringInterval": 30,
        "scoringEndpointAuthName": "",
        "scoringEndpointAuthKey": "",
        "location": "Internal",
        "scoreDestination": "AddOnPlacementScore",
        "scoreDimensionFormat": "${app};${device}",
    }


def test_none_takes_the_object_as_it_is_whatever_the_api_says() -> None:
    outcome = resolved(api_config(), mode="none", **OWN)
    assert outcome == resolved(None, mode="None", **OWN)
    summary = outcome.summary
    assert outcome.conflicts == ()
    assert summary.source_type == "Prometheus"
    assert summary.source_endpoint == "http://thanos:9090/api/v1/query"
    assert (summary.source_query, summary.source_range, summary.source_step) == ("up == 1", 0, 15)
    assert summary.scoring_endpoint == "http://other:8000/own"
    assert (summary.score_name, summary.scoring_interval) == ("own_score", 10)


def test_how_scores_are_read_comes_from_the_api_or_else_from_the_object() -> None:
    normalize = {"min": 0, "max": 5, "invert": True}
    own = {"scoring": {"normalize": normalize, "onFailure": {"policy": "Hold", "holdSeconds": 60}}}
    for config in (api_config(), None):
        mode = {} if config else {"mode": "None"}
        scoring = own["scoring"] | ({} if config else {"params": {"name": "x"}})
        summary = resolved(config, scoring=scoring, **mode).summary.model_dump(by_alias=True)
        assert summary["scoringNormalize"] == normalize
        assert summary["scoringOnFailure"] == {"policy": "Hold", "holdSeconds": 60}
    config = api_config()
    config["scoring"]["onFailure"] = {"policy": "Value", "value": -1}
    outcome = resolved(config, **own)
    assert outcome.summary.scoring_on_failure == OnFailure(policy="Value", value=-1)
    assert [str(c.in_config) for c in outcome.conflicts] == ["Value -1"]


def test_a_forecast_comes_from_the_api_or_else_from_the_object() -> None:
    own = {"horizon": 600, "truth": {"query": "avg by (node) (node_load1)"}}
    summary = resolved(api_config(), forecast=own).summary.model_dump(by_alias=True)
    assert summary["forecast"] == {**own, "quantile": 0.5}
    outcome = resolved(api_config() | {"forecast": {**own, "horizon": 60}}, forecast=own)
    assert outcome.summary.forecast
    assert outcome.summary.forecast.horizon == 60
    (conflict,) = outcome.conflicts
    assert conflict.field == "forecast"
    assert str(conflict.in_spec) == "600 s ahead, truth avg by (node) (node_load1)"
    assert "forecast" not in resolved(api_config()).summary.model_dump(by_alias=True)


PROPERTIES = {
    "displayName": ("Power", "Watts"),
    "unit": ("W", "kW"),
    "direction": ("LowerIsBetter", "HigherIsBetter"),
    "range": ({"min": 0}, {"min": 1}),
}
"""Two values of each property of a score: one in the config, one in the object."""


@pytest.mark.parametrize("field", [str(one.alias) for one in DeclaredMeaning.model_fields.values()])
def test_each_property_of_a_score_is_published_and_the_configs_wins(field: str) -> None:
    served, own = PROPERTIES[field]
    both = resolved({**api_config(), field: served}, **{field: own})
    assert [conflict.field for conflict in both.conflicts] == [field]
    alone = resolved({**api_config(), field: served})
    assert (both.meaning, alone.conflicts) == (alone.meaning, ())
    filled_in = resolved(api_config(), **{field: own})
    for outcome in (alone, filled_in):
        assert outcome.meaning.model_dump(by_alias=True, exclude_none=True).keys() == {field}
    assert alone.meaning != filled_in.meaning


@pytest.mark.parametrize("type_", ["None", "OpenTelemetry"])
def test_a_truth_that_no_source_can_tell_is_refused(type_: str) -> None:
    config = api_config() | {"forecast": {"horizon": 60, "truth": {"query": "up"}}}
    config["source"]["type"] = type_
    outcome = attempt(config)
    assert isinstance(outcome, InvalidInput)
    assert outcome.reason == "ForecastWithoutPrometheus"
    assert type_ in outcome.message


SECRETS = {
    "sourceEndpointAuthName": "prom",
    "sourceEndpointAuthKey": "token",
    "sourceEndpointCAName": "prom-ca",
    "sourceEndpointCAKey": "ca.crt",
    "sourceEndpointTenant": "team-a",
    "scoringEndpointAuthName": "api",
    "scoringEndpointAuthKey": "bearer",
    "scoringEndpointCAName": "api-ca",
    "scoringEndpointCAKey": "tls.pem",
}


def test_secrets_and_the_tenant_are_the_objects_in_both_modes() -> None:
    source_ca = {"caSecretRef": {"name": "prom-ca", "key": "ca.crt"}}
    source = {**OWN["source"], "tls": source_ca, "tenant": "team-a"}
    scoring = {**OWN["scoring"], "tls": {"caSecretRef": {"name": "api-ca", "key": "tls.pem"}}}
    own_token = {**source, "auth": {"serviceAccountToken": True}}
    theirs = api_config(tenant="team-b")
    for config, mode in ((theirs, "Full"), (None, "None")):
        summary = resolved(config, mode=mode, source=source, scoring=scoring).summary
        assert summary.model_dump(by_alias=True).items() >= SECRETS.items()
        outcome = resolved(config, mode=mode, source=own_token, scoring=scoring)
        assert outcome.summary.source_endpoint_auth_service_account
    assert "sourceEndpointTenant" not in resolved(theirs).summary.model_dump(by_alias=True)


def test_only_prometheus_has_tenants() -> None:
    source = {**OWN["source"], "type": "OpenTelemetry", "params": {"query": "gpu"}, "tenant": "a"}
    summary = resolved(None, mode="None", source=source, scoring=OWN["scoring"]).summary
    assert summary.source_endpoint_tenant == ""


NODES = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "resource": "nodes",
    "values": {"cpu": ".usage.cpu"},
}


def test_objects_are_a_source_of_either_side_that_asks_no_server() -> None:
    """What the DynamicScorer says of a server does not reach agents with the API's objects."""
    objects = {"type": "kubernetes", "kubernetes": NODES}
    document = {**api_config(), "source": objects}
    own = {**objects, "params": {"range": 600, "step": 30}}
    for outcome, window in (
        (resolved(document), (0, 60)),
        (resolved(document, source=OWN["source"]), (0, 15)),
        (resolved(None, mode="None", source=own, scoring=OWN["scoring"]), (600, 30)),
    ):
        summary = outcome.summary
        assert (summary.source_type, summary.source_endpoint) == ("Kubernetes", "")
        assert summary.source_endpoint_auth_name == summary.source_query == ""
        assert (summary.source_range, summary.source_step) == window
        assert summary.source_kubernetes == KubernetesObjects.model_validate(NODES)
        assert load_summaries(dump_summaries([summary])) == (summary,)


@pytest.mark.parametrize(
    ("objects", "reason", "said"),
    [
        (None, "MissingObjects", "needs source.kubernetes"),
        ({**NODES, "values": {"cpu": "usage"}}, "InvalidPath", "source.kubernetes.values.cpu: "),
        ({**NODES, "labels": {"a": ".a[?(@.b=~1)]"}}, "InvalidPath", "source.kubernetes.labels.a"),
        ({**NODES, "apiVersion": "v1", "resource": "secrets"}, "SecretsRefused", "Secrets are not"),
    ],
)
def test_objects_that_cannot_be_read_are_refused(objects: Any, reason: str, said: str) -> None:
    outcome = attempt({**api_config(), "source": {"type": "Kubernetes", "kubernetes": objects}})
    assert isinstance(outcome, InvalidInput)
    assert outcome.reason == reason
    assert said in outcome.message


def test_conflicts_name_the_field_and_both_values_and_the_api_wins() -> None:
    outcome = resolved(api_config(), **OWN)
    assert outcome.conflicts == (
        ConfigConflict(
            "source.host", "http://thanos:9090", "http://prometheus.monitoring.svc:9090"
        ),
        ConfigConflict("source.path", "/api/v1/query", "/api/v1/query_range"),
        ConfigConflict("source.params.query", "up == 1", "up"),
        ConfigConflict("source.params.range", 0, 3600),
        ConfigConflict("source.params.step", 15, 30),
        ConfigConflict("scoring.host", "http://other:8000", "http://cpu.scorers.svc:8000"),
        ConfigConflict("scoring.path", "/own", "/scoring"),
        ConfigConflict("scoring.params.name", "own_score", "cpu_score"),
        ConfigConflict("scoring.params.interval", 10, 30),
    )
    assert outcome.summary.scoring_endpoint == "http://cpu.scorers.svc:8000/scoring"
    assert outcome.summary.source_step == 30


@pytest.mark.parametrize("spelling", ["prometheus", "PROMETHEUS", "Prometheus"])
def test_letter_case_is_no_conflict_and_is_normalised(spelling: str) -> None:
    outcome = resolved(api_config(type=spelling), source={"type": "prometheus"})
    assert outcome.summary.source_type == "Prometheus"
    assert outcome.conflicts == ()


def test_the_object_fills_in_what_the_api_leaves_open() -> None:
    config = {"name": "x", "source": {}, "scoring": {"params": {"name": "x_score"}}}
    summary = resolved(config, **OWN).summary
    assert summary.source_endpoint == "http://thanos:9090/api/v1/query"
    assert summary.source_query == "up == 1"
    assert summary.scoring_endpoint == "http://cpu.scorers.svc:8000/own"
    assert summary.scoring_interval == 10


def test_defaults_close_what_both_leave_open() -> None:
    source = {"host": "https://prometheus", "params": {"query": "up"}}
    scoring = {"params": {"name": "x"}}
    for outcome in (
        resolved({"name": "x", "source": source, "scoring": scoring}),
        resolved(None, mode="None", source=source, scoring=scoring),
    ):
        summary = outcome.summary
        assert summary.source_endpoint == "https://prometheus/api/v1/query_range"
        assert (summary.source_range, summary.source_step) == (3600, 60)
        assert summary.scoring_endpoint == "http://cpu.scorers.svc:8000/scoring"
        assert summary.scoring_interval == 30


def test_source_type_none_has_no_source_whatever_the_object_says() -> None:
    config = {
        "name": "static",
        "source": {"type": "none"},
        "scoring": {"path": "/performance/scoring", "params": {"name": "static"}},
    }
    outcome = resolved(config, url="http://static:8000/performance/config", **OWN)
    summary = outcome.summary
    assert summary.source_type == "None"
    assert (summary.source_endpoint, summary.source_query, summary.source_range) == ("", "", 0)
    assert (summary.source_endpoint_auth_name, summary.source_endpoint_auth_key) == ("", "")
    assert summary.scoring_endpoint == "http://static:8000/performance/scoring"
    assert ConfigConflict("source.type", "Prometheus", "None") in outcome.conflicts


def test_an_object_without_source_in_mode_none_reads_no_source() -> None:
    assert resolved(None, mode="None", scoring=OWN["scoring"]).summary.source_type == "None"


def test_the_api_may_name_its_own_scoring_host_with_a_base_path() -> None:
    config = api_config()
    config["scoring"]["host"] = "https://gateway.example/ml/"
    assert resolved(config).summary.scoring_endpoint == "https://gateway.example/ml/scoring"


@pytest.mark.parametrize(
    ("config", "spec", "reason", "told"),
    [
        (None, {}, "ConfigMissing", "config endpoint"),
        (api_config(params={"query": " "}), {}, "MissingQuery", "source.params.query"),
        (
            api_config(type="OpenTelemetry", params={}),
            {},
            "MissingQuery",
            "type OpenTelemetry needs source.params.query",
        ),
        (
            api_config(type="opentelemetry", params={"query": "rate(up[5m])"}),
            {},
            "InvalidSelector",
            "source.params.query: nothing fits at character 5",
        ),
        (api_config(host=None), {}, "MissingSourceHost", "source.host"),
        (api_config(host="prometheus:9090"), {}, "InvalidURL", "http://host:port"),
        (api_config(host="http://u:secret@prom"), {}, "InvalidURL", "tokenSecretRef"),
        (api_config(host="http://prom\n"), {}, "InvalidURL", "white space"),
        (api_config(host="http://prom:port"), {}, "InvalidURL", "source.host"),
        (api_config(path="/a b"), {}, "InvalidURL", "source.path"),
        (api_config(), {"url": "http://u:secret@cpu/config"}, "InvalidURL", "spec.configURL"),
        (
            api_config(),
            {"scoreDimensionFormat": "${app};${pool}"},
            "InvalidDimensionFormat",
            "pool",
        ),
        (None, {"mode": "None"}, "MissingScoreName", "scoring.params.name"),
        (
            api_config(),
            {"source": {"auth": BAD_CLIENT}},
            "InvalidURL",
            "source.auth.oauth2.tokenURL",
        ),
        (
            api_config(),
            {"scoring": {"auth": BAD_CLIENT}},
            "InvalidURL",
            'scoring.auth.oauth2.tokenURL "http://[sso/t": Invalid IPv6 URL',
        ),
    ],
)
def test_what_cannot_be_used_says_why(
    config: dict[str, Any] | None, spec: dict[str, Any], reason: str, told: str
) -> None:
    outcome = attempt(config, **spec)
    assert isinstance(outcome, InvalidInput)
    assert outcome.reason == reason
    assert told in outcome.message
    assert "secret" not in outcome.message


maybe_host = st.none() | st.sampled_from(["http://a", "http://b:1", "https://c/base/"])
maybe_path = st.none() | st.sampled_from(["/x", "y", "/z/"])
maybe_seconds = st.none() | st.integers(1, 100)
sources = st.fixed_dictionaries(
    {"type": st.sampled_from(["Prometheus", "none", "OpenTelemetry"])},
    optional={
        "host": maybe_host,
        "path": maybe_path,
        "params": st.fixed_dictionaries(
            {}, optional={"query": st.sampled_from(["up", "down"]), "step": maybe_seconds}
        ),
    },
)
scorings = st.fixed_dictionaries(
    {"params": st.fixed_dictionaries({"name": st.sampled_from(["a_b", "c"])})},
    optional={"host": maybe_host, "path": maybe_path},
)


@given(theirs=sources, their_scoring=scorings, own=st.none() | sources, own_scoring=scorings)
def test_in_mode_full_the_object_never_changes_what_the_api_says(
    theirs: dict[str, Any],
    their_scoring: dict[str, Any],
    own: dict[str, Any] | None,
    own_scoring: dict[str, Any],
) -> None:
    config = {"name": "x", "source": theirs, "scoring": their_scoring}
    alone = attempt(config)
    both = attempt(config, source=own, scoring=own_scoring)
    assert isinstance(both, Resolved) or isinstance(alone, InvalidInput)
    if isinstance(both, Resolved):
        assert both.summary.source_type.lower() == theirs["type"].lower()
        assert both.summary.score_name == their_scoring["params"]["name"]
        assert all(conflict.in_spec != conflict.in_config for conflict in both.conflicts)
    if isinstance(alone, Resolved) and isinstance(both, Resolved) and not both.conflicts:
        said = {name for name, value in alone.summary if value}
        differing = {n for n in said if getattr(both.summary, n) != getattr(alone.summary, n)}
        # Without a conflict the object may only replace defaults.
        assert differing <= {"scoring_endpoint", "source_endpoint", "source_step"}


GPU, POWER = "DCGM_FI_DEV_GPU_UTIL", "kepler_node_platform_watt"


def joining(**changes: Any) -> dict[str, Any]:
    """Return a config with two sources; `changes` are those of the second."""
    document = api_config()
    del document["source"]
    power = {"name": "power", "host": "http://kepler:9102", "params": {"query": POWER, "range": 60}}
    gpu = {"name": "gpu", "host": "http://prom:9090", "params": {"query": GPU}}
    return {**document, "sources": [gpu, {**power, **changes}]}


def test_each_of_several_sources_is_resolved_by_its_name() -> None:
    token = {"auth": {"tokenSecretRef": {"name": "prom", "key": "token"}}}
    outcome = resolved(
        joining(),
        sources=[
            {"name": "power", "tenant": "a", "params": {"range": 900, "step": 15}, **token},
            {"name": "gpu", "params": {"step": 5}},
        ],
    )
    summary = outcome.summary.model_dump(by_alias=True)
    assert summary["sourceType"] == "Several"
    assert summary["sourceQuery"] == summary["sourceEndpoint"] == ""
    assert list(summary["sources"]) == [
        {
            "name": "gpu",
            "type": "Prometheus",
            "endpoint": "http://prom:9090/api/v1/query_range",
            "query": GPU,
            "range": 3600,
            "step": 5,
        },
        {
            "name": "power",
            "type": "Prometheus",
            "endpoint": "http://kepler:9102/api/v1/query_range",
            "endpointAuthName": "prom",
            "endpointAuthKey": "token",
            "endpointTenant": "a",
            "query": POWER,
            "range": 60,
            "step": 15,
        },
    ]
    assert outcome.conflicts == (ConfigConflict("sources.power.params.range", 900, 60),)


def test_one_source_of_the_scorer_fills_in_each_of_the_configs() -> None:
    document = joining()
    for one in document["sources"]:
        del one["host"]
    found = resolved(document, source={"host": "http://thanos:9090", "tenant": "a"}).summary
    assert {one.endpoint for one in found.sources} == {"http://thanos:9090/api/v1/query_range"}
    assert {one.endpoint_tenant for one in found.sources} == {"a"}


def test_sources_that_the_config_lacks_are_named_as_a_conflict() -> None:
    sources = [{"name": "cost", "params": {"query": "up"}}, {"name": "gpu"}]
    assert resolved(joining(), sources=sources).conflicts == (
        ConfigConflict("sources", "cost", "gpu, power"),
    )
    assert resolved(api_config(), sources=sources).conflicts == (
        ConfigConflict("sources", "cost, gpu", "source"),
    )


def test_mode_none_takes_the_sources_of_the_scorer() -> None:
    sources = [
        {"name": "gpu", "host": "http://prom:9090", "params": {"query": GPU}},
        {"name": "otlp", "type": "opentelemetry", "params": {"query": "power"}},
    ]
    found = resolved(mode="None", sources=sources, scoring=OWN["scoring"]).summary
    assert [(one.name, one.type, one.query) for one in found.sources] == [
        ("gpu", "Prometheus", GPU),
        ("otlp", "OpenTelemetry", "power"),
    ]


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"params": {}}, "MissingQuery", "needs sources.power.params.query"),
        ({"host": ""}, "MissingSourceHost", "needs sources.power.host"),
        ({"host": "http://u:p@h"}, "InvalidURL", "sources.power.host holds a user name"),
        ({"type": "OpenTelemetry"}, "", ""),
        (
            {"type": "OpenTelemetry", "params": {"query": "rate(x)"}},
            "InvalidSelector",
            "sources.power.params.query",
        ),
    ],
)
def test_the_source_that_cannot_be_used_is_named(
    changes: dict[str, Any], reason: str, message: str
) -> None:
    outcome = attempt(joining(**changes))
    assert isinstance(outcome, InvalidInput) == bool(reason)
    if isinstance(outcome, InvalidInput):
        assert outcome.reason == reason
        assert message in outcome.message


def test_the_truth_of_forecasts_is_read_from_the_first_source() -> None:
    forecast = {"horizon": 600, "truth": {"query": "up"}}
    document = joining(type="OpenTelemetry")
    assert resolved({**document, "forecast": forecast}).summary.forecast
    document["sources"].reverse()
    outcome = attempt({**document, "forecast": forecast})
    assert isinstance(outcome, InvalidInput)
    assert outcome.reason == "ForecastWithoutPrometheus"


def test_further_parameters_are_joined_and_the_configs_win() -> None:
    document = api_config()
    document["scoring"]["params"] |= {"model": "linear", "horizon": 3600, "copy": 1}
    own = {"params": {"horizon": 7200, "window": 5, "copy": 1}}
    outcome = resolved(document, scoring=own)
    joined = {"model": "linear", "horizon": 3600, "window": 5, "copy": 1}
    assert outcome.summary.scoring_params == joined
    assert outcome.conflicts == (ConfigConflict("scoring.params.horizon", 7200, 3600),)
    alone = resolved(document, mode="None", scoring={"params": {"name": "s", "alpha": 0.5}})
    assert alone.summary.scoring_params == {"alpha": 0.5}


def test_too_many_parameters_of_both_sides_are_refused() -> None:
    document = api_config()
    document["scoring"]["params"] |= {f"a{number}": number for number in range(20)}
    outcome = attempt(document, scoring={"params": {f"b{number}": True for number in range(20)}})
    assert outcome == InvalidInput(
        "InvalidParams", "scoring.params: 40 further parameters: give at most 32"
    )


def test_a_default_score_of_the_config_wins_and_has_to_name_entries() -> None:
    document = api_config()
    document["scoring"]["defaultScore"] = {"value": -100}
    outcome = attempt(document, scoreDimensionFormat="${node}")
    assert isinstance(outcome, InvalidInput)
    assert outcome.reason == "DefaultScoreUnnamed"
    of_cluster = {"scoreDimensionFormat": "${node}", "scoreDimensionFormats": ["${scoreName}"]}
    found = resolved(document, **of_cluster, scoring={"defaultScore": {"value": 5}})
    assert found.summary.scoring_default_score == DefaultScore(value=-100)
    assert found.summary.score_dimension_formats == ("${scoreName}",)
    assert [one.field for one in found.conflicts] == ["scoring.defaultScore"]
    document["scoring"]["defaultScore"] = {"value": 0, "entries": ["n1"]}
    assert resolved(document).summary.scoring_default_score


def test_each_format_has_to_be_usable() -> None:
    outcome = attempt(api_config(), scoreDimensionFormats=["${node}", "${app}-${zone}"])
    assert isinstance(outcome, InvalidInput)
    assert outcome.reason == "InvalidDimensionFormat"
    assert "${zone}" in outcome.message


EXAMPLES = sorted((ROOT / "docs/examples/dynamicscorer").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.stem))
def test_the_scorers_of_the_examples_can_be_used(path: Path) -> None:
    spec = DynamicScorerSpec.model_validate(yaml.safe_load(path.read_text())["spec"])
    outcome = resolve(path.stem, spec, None)
    assert isinstance(outcome, Resolved), outcome
    if path.stem == "cpu-predictor":
        assert outcome.summary.scoring_params == {"model": "linear_regression", "horizon": 3600}
