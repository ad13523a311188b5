"""A scorer that asks for a context gets it, on an API server with rights and pruning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from ..harness.api import ApiError, condition_of
from .conftest import SCORE, WORK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.hub import Hub

SCORE_NAME = "told-score"
CLUSTER_SET = "cluster.open-cluster-management.io/clusterset"
SECRET = "hunter2"
OBJECTS = """
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata:
  name: mwrs-chat
  namespace: {namespace}
  labels: {{app: chat, resource-request-kind: gpu, resource-request-amount: "2"}}
spec:
  placementRefs: [{{name: chat, rolloutStrategy: {{type: All}}}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: chat, namespace: default}}
        spec:
          selector: {{matchLabels: {{app: chat}}}}
          template:
            metadata: {{labels: {{app: chat}}}}
            spec:
              containers:
              - {{name: main, image: "chat:1", env: [{{name: TOKEN, value: {secret}}}]}}
---
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata:
  name: policy-3g
  namespace: {namespace}
  labels:
    resource-supply-kind: gpu
    resource-supply-device: 3g.48gb
    resource-supply-amount: "2"
spec: {{disabled: true, policy-templates: []}}
"""


@pytest.fixture
def told(
    hub: Hub,
    framework: str,
    manifests_namespace: str,
    registered: list[Object],
    scored: dict[tuple[str, str], Object],
) -> Iterator[Object]:
    """A DynamicScorer with a context, and what it asks for, for as long as a test takes."""
    objects = hub.apply(OBJECTS.format(namespace=manifests_namespace, secret=SECRET))
    hub.apply(context_scorer(framework, registered))
    scorer = ("DynamicScorer", "told", framework)
    api_version = registered[0]["apiVersion"]
    yield context_scorer(framework, registered)
    hub.api.delete(api_version, *scorer)
    for obj in objects:
        metadata = obj["metadata"]
        hub.api.delete(obj["apiVersion"], obj["kind"], metadata["name"], metadata["namespace"])
    until("the score to be gone", lambda: not hub.api.find(*SCORE, SCORE_NAME, "east"))


def context_scorer(namespace: str, registered: list[Object], **context: object) -> Object:
    """A DynamicScorer of mode None that asks for a context."""
    [nearness] = [obj for obj in registered if obj["metadata"]["name"] == "nearness"]
    spec = nearness["spec"]
    scoring = {**spec["scoring"], "params": {"name": "told_score", "interval": 1}}
    asked = {
        "cluster": True,
        "labels": [CLUSTER_SET],
        "workloads": {"fields": ["image"]},
        "devices": True,
        **context,
    }
    metadata = {"name": "told", "namespace": namespace}
    return {
        **nearness,
        "metadata": metadata,
        "spec": {**spec, "scoring": scoring, "context": asked},
    }


def sent(hub: Hub) -> Object | None:
    """The summary of the scorer in the ManifestWork of east, once it has a device."""
    work = hub.api.find(*WORK, "east")
    manifests = work["spec"]["workload"]["manifests"] if work else []
    texts = [each["data"]["summaries"] for each in manifests if each["kind"] == "ConfigMap"]
    found = [each for text in texts for each in json.loads(text) if each["name"] == "told"]
    return found[0] if found and found[0].get("contextDevices") else None


def test_workloads_and_devices_reach_the_agents(
    hub: Hub, told: Object, manifests_namespace: str
) -> None:
    summary = until(
        "the summary with a device", lambda: (sent(hub) or {}).get("contextDevices") and sent(hub)
    )
    assert summary is not None
    [device] = summary["contextDevices"]
    assert (device["device"], device["amount"]) == ("3g.48gb", "2")
    [workload] = summary["contextWorkloads"]
    assert (workload["app"], workload["requests"]) == ("chat", {"gpu": "2"})
    [template] = workload["templates"]
    assert template["containers"] == [{"name": "main", "image": "chat:1"}]
    assert summary["contextLabels"] == {CLUSTER_SET: "default"}
    assert SECRET not in json.dumps(summary)
    until("a score on east", lambda: hub.api.find(*SCORE, SCORE_NAME, "east"))
    where = told["metadata"]["namespace"]

    def reason() -> str:
        scorer = hub.api.get(told["apiVersion"], "DynamicScorer", "told", where)
        return str(condition_of(scorer, "ContextAvailable")["reason"])

    until("its status", lambda: reason() == "Available")
    mwrs = ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "mwrs-chat")
    hub.api.patch(*mwrs, {"metadata": {"labels": {"app": "talk"}}}, manifests_namespace)
    until(
        "the workload's new app",
        lambda: [each["app"] for each in (sent(hub) or {})["contextWorkloads"]] == ["talk"],
    )


@pytest.mark.parametrize("fields", [["env"], ["secrets"]])
def test_a_scorer_that_asks_for_secrets_is_refused(
    hub: Hub, framework: str, registered: list[Object], fields: list[str]
) -> None:
    scorer = context_scorer(framework, registered, workloads={"fields": fields})
    with pytest.raises(ApiError, match="Unsupported value"):
        hub.apply(scorer)
