"""Which workloads and devices a summary gets, and when it gets none."""

from typing import Any

import pytest

from dsf.api.crd.scoring_params import AskedContext
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import (
    ScoredWorkload,
    SuppliedDevice,
    TemplateContainer,
    WorkloadTemplate,
)
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.assess.context_completion import CONTEXT_BYTES, with_manifests
from dsf.hub.snapshot.manifests import NamespaceManifests


def asking(**context: Any) -> ScorerSummary:
    return ScorerSummary(
        name="perf",
        score_name="perf",
        source_type="None",
        scoring_endpoint="http://api/scoring",
        scoring_interval=30,
        score_dimension_format="${app};${device}",
        context=AskedContext.model_validate(context),
    )


def workload(namespace: str, app: str, image: str = "a:1") -> ScoredWorkload:
    container = TemplateContainer(name="main", image=image, requests={"cpu": "1"}, limits=None)
    template = WorkloadTemplate(
        kind="Deployment",
        name=app,
        replicas=2,
        node_selector={"zone": "a"},
        runtime_class_name=None,
        containers=[container],
    )
    return ScoredWorkload(
        namespace=namespace,
        name=f"mwrs-{app}",
        app=app,
        requests={"gpu": "2"},
        priority=0,
        templates=[template],
    )


def device(namespace: str, name: str) -> SuppliedDevice:
    return SuppliedDevice(
        namespace=namespace, policy=f"policy-{name}", kind="gpu", device=name, amount="2"
    )


MANIFESTS = {
    "a": NamespaceManifests((workload("a", "app01"),), (device("a", "3g.48gb"),)),
    "b": NamespaceManifests((workload("b", "app02"),), ()),
}


def completed(manifests: Any = MANIFESTS, **context: Any) -> ScorerSummary:
    found = with_manifests(asking(**context), manifests)
    assert isinstance(found, ScorerSummary), found
    return found


def refused(manifests: Any = MANIFESTS, **context: Any) -> InvalidInput:
    found = with_manifests(asking(**context), manifests)
    assert isinstance(found, InvalidInput)
    return found


def test_a_scorer_gets_only_what_it_asks_for() -> None:
    assert completed(labels=["x"], cluster=True) == asking(labels=["x"], cluster=True)
    only_devices = completed(devices=True)
    assert [each.device for each in only_devices.context_devices] == ["3g.48gb"]
    assert only_devices.context_workloads == ()
    only_workloads = completed(workloads={})
    assert [each.app for each in only_workloads.context_workloads] == ["app01", "app02"]
    assert [each.templates for each in only_workloads.context_workloads] == [[], []]
    assert only_workloads.context_devices == ()


@pytest.mark.parametrize(
    ("fields", "template"),
    [
        (["image"], {"containers": [{"name": "main", "image": "a:1"}]}),
        (["requests", "limits"], {"containers": [{"name": "main", "requests": {"cpu": "1"}}]}),
        (
            ["replicas", "nodeSelector", "runtimeClassName"],
            {"replicas": 2, "nodeSelector": {"zone": "a"}, "containers": [{"name": "main"}]},
        ),
    ],
)
def test_a_template_has_only_the_fields_that_are_asked_for(
    fields: list[str], template: dict[str, Any]
) -> None:
    (found,) = completed(workloads={"fields": fields}, namespaces=["a"]).context_workloads
    (sent,) = found.model_dump(by_alias=True)["templates"]
    assert sent == {"kind": "Deployment", "name": "app01", **template}


def test_only_namespaces_that_the_controller_may_read_are_sent() -> None:
    assert refused({}, devices=True).reason == "ManifestsNotAllowed"
    denied = refused(workloads={}, namespaces=["a", "kube-system"])
    assert denied.reason == "ManifestsNotAllowed"
    assert "namespace kube-system" in denied.message
    assert "--manifest-namespace" in denied.message


def test_what_has_not_been_listed_yet_is_not_taken_for_nothing() -> None:
    unread = {**MANIFESTS, "b": NamespaceManifests(None, ())}
    assert refused(unread, workloads={}).reason == "ManifestsUnread"
    assert completed(unread, devices=True).context_devices
    assert refused({"b": NamespaceManifests((), None)}, devices=True).reason == "ManifestsUnread"


def test_what_is_too_large_is_refused_and_never_cut() -> None:
    def sized(length: int) -> dict[str, NamespaceManifests]:
        return {"a": NamespaceManifests((workload("a", "app01", "x" * length),), ())}

    asked = {"workloads": {"fields": ["image"]}}
    sent = completed(sized(1), **asked).context_workloads
    around = len(f'{{"workloads":[{sent[0].model_dump_json(by_alias=True)}],"devices":[]}}') - 1
    longest = CONTEXT_BYTES - around
    assert len(completed(sized(longest), **asked).context_workloads) == 1
    too_large = refused(sized(longest + 1), **asked)
    assert too_large.reason == "ContextTooLarge"
    assert f"1 workload and 0 devices take {CONTEXT_BYTES + 1} bytes" in too_large.message
    assert completed(sized(longest + 1), workloads={}).context_workloads
