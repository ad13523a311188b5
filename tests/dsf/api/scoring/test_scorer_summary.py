"""The text of scorer summaries: what agents get of a context, and how."""

import json

from dsf.api.crd.asked_context import AskedContext
from dsf.api.scoring.request_context import ScoredWorkload, SuppliedDevice
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
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


def test_workloads_and_devices_have_a_line_each() -> None:
    workload = ScoredWorkload(namespace="a", name="mwrs", app='é"\n', requests={"gpu": "2"})
    device = SuppliedDevice(namespace="a", policy="p", kind="gpu", device="all", amount="1")
    full = summary(context_workloads=(workload, workload), context_devices=(device,))
    text = dump_summaries([full, summary("other")])
    assert sum(line.startswith('      {"namespace": "a"') for line in text.splitlines()) == 3
    assert load_summaries(text) == tuple(sorted((full, summary("other")), key=lambda x: x.name))


def test_a_summary_without_a_context_says_nothing_of_it() -> None:
    assert "context" not in dump_summaries([summary()])
    assert dump_summaries([]) == "[]"
