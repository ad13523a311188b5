"""The text of scorer summaries: what agents get of a context, and how."""

import json

from dsf.api.crd.score_rules import DefaultScore
from dsf.api.crd.scoring_params import AskedContext
from dsf.api.scoring.scorer_summary import SEVERAL, SummarySource, dump_summaries, load_summaries
from dsf.api.scoring.scoring_api import ScoredWorkload, SuppliedDevice
from tests.dsf.agent.builders import summary

ASKED = AskedContext.model_validate(
    {"cluster": True, "labels": ["region"], "workloads": {"fields": ["image"]}, "namespaces": ["a"]}
)


def test_agents_get_no_names_of_template_fields_which_an_older_one_would_refuse() -> None:
    text = dump_summaries([summary(context=ASKED)])
    (document,) = json.loads(text)
    assert document["context"] == {"cluster": True, "labels": ["region"], "workloads": {}}
    read = load_summaries(text)
    assert isinstance(read, tuple)
    assert read[0].context is not None
    assert read[0].context.workloads is not None


def test_an_agent_ignores_what_a_newer_hub_adds_to_a_context() -> None:
    (document,) = json.loads(dump_summaries([summary(context=ASKED)]))
    document["context"]["nodes"] = document["contextNodes"] = True
    read = load_summaries(json.dumps([document]))
    assert isinstance(read, tuple)
    assert read[0].context is not None
    assert read[0].context.cluster


def test_an_agent_ignores_fields_of_a_newer_hub() -> None:
    known = summary(sources=(SummarySource(name="cost", type="Prometheus"),))
    (document,) = json.loads(dump_summaries([known]))
    document["scoringRetries"] = document["sources"][0]["region"] = {"newer": [1]}
    assert load_summaries(json.dumps([document])) == (known,)


def test_workloads_and_devices_have_a_line_each() -> None:
    workload = ScoredWorkload(namespace="a", name="mwrs", app='é"\n', requests={"gpu": "2"})
    device = SuppliedDevice(namespace="a", policy="p", kind="gpu", device="all", amount="1")
    full = summary(context_workloads=(workload, workload), context_devices=(device,))
    text = dump_summaries([full, summary("other")])
    assert sum(line.startswith('      {"namespace": "a"') for line in text.splitlines()) == 3
    assert load_summaries(text) == tuple(sorted((full, summary("other")), key=lambda x: x.name))


GPU = SummarySource(name="gpu", type="Prometheus", endpoint="http://prom:9090/q", query="gpu")
POWER = SummarySource(
    name="power",
    type="OpenTelemetry",
    endpoint_ca_name="ca",
    endpoint_auth_service_account=True,
    query="watt",
    range=600,
    step=30,
)


def test_several_sources_are_read_as_they_are_written_and_an_older_agent_knows_none() -> None:
    one = summary(
        source_type=SEVERAL,
        sources=(GPU, POWER),
        scoring_params={"model": "m", "horizon": 60, "log": True, "alpha": 0.5},
        scoring_default_score=DefaultScore(value=-100),
        score_dimension_formats=("${scoreName}",),
    )
    text = dump_summaries([one])
    assert load_summaries(text) == (one,)
    (document,) = json.loads(text)
    assert document["sources"][1] == {
        "name": "power",
        "type": "OpenTelemetry",
        "endpoint": "",
        "endpointAuthServiceAccount": True,
        "endpointCAName": "ca",
        "query": "watt",
        "range": 600,
        "step": 30,
    }
    assert document["sourceType"] not in {"Prometheus", "OpenTelemetry", "None", ""}


def test_each_source_can_be_read_as_the_only_one() -> None:
    gpu, power = summary(source_type=SEVERAL, sources=(GPU, POWER)).single_sources
    assert (gpu.source_name, gpu.source_type, gpu.source_endpoint) == (
        "gpu",
        "Prometheus",
        "http://prom:9090/q",
    )
    assert (power.source_range, power.source_step, power.source_query) == (600, 30, "watt")
    assert (power.source_endpoint_ca_name, power.source_endpoint_auth_service_account) == (
        "ca",
        True,
    )
    assert power.single_sources == (power,)
    assert summary().single_sources == (summary(),)
    assert summary().source_name == ""
