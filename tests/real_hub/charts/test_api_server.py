"""Every combination of a chart's values, as the API server sees it: strict, and restricted."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.charts.programs import crds
from tests.charts.rendering import expanded, pod_spec, render
from tests.charts.toggles import CHARTS, combinations
from tests.eventually import until
from tests.monitoring.rules_and_dashboards import EXAMPLES

from ..harness.api import APPLY, ApiError

if TYPE_CHECKING:
    from ..harness.api import Api, Object
    from ..harness.hub import Hub

STRICT = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "charts", "force": "true"}
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
RESTRICTED = "charts-restricted"


@pytest.fixture(scope="module")
def api(hub: Hub, framework: str) -> Api:
    """The hub with the CRDs of Prometheus' operator and of the Gateway API, and with namespaces."""
    for file in crds():
        crd = yaml.safe_load(file.read_text())
        hub.apply(crd)
        hub.api.wait_condition(*CRD, crd["metadata"]["name"], "Established")
    for name in ("dsf", "dynamic-scoring", "east", "kueue-system", "shop"):
        hub.namespace(name)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    hub.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": RESTRICTED, "labels": labels},
        }
    )
    until("the account", lambda: hub.api.find("v1", "ServiceAccount", "default", RESTRICTED))
    return hub.api


@pytest.mark.parametrize("chart", CHARTS)
def test_each_combination_of_values_is_accepted(api: Api, chart: str) -> None:
    refused: dict[str, set[str]] = {}
    checked = itertools.count()
    for name, values in combinations(chart):
        for obj in expanded(render(chart, values)):
            next(checked)
            for problem in (applied(api, obj), restricted(api, obj)):
                if problem:
                    refused.setdefault(problem, set()).add(name)
    assert refused == {}
    assert next(checked) > 50


def test_the_examples_for_prometheus_are_accepted(api: Api, hub: Hub) -> None:
    """Values of kube-prometheus-stack are not: its chart can't be had here."""
    hub.namespace("monitoring")
    values = yaml.safe_load((EXAMPLES / "framework-values.yaml").read_text(encoding="utf-8"))
    objects = expanded(render("dynamic-scoring-framework", values))
    for path in (*EXAMPLES.glob("*.yaml"), EXAMPLES.parent / "servicemonitor.yaml"):
        documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
        objects += [obj for obj in documents if "kind" in obj]
    kinds = Counter(obj["kind"] for obj in objects)
    assert kinds["PrometheusRule"] == 4
    assert kinds["ServiceMonitor"] == 2
    (pod,) = [obj for obj in objects if obj["metadata"]["name"] == "curl-tester"]
    pod["metadata"]["namespace"] = "monitoring"
    problems = [applied(api, obj) or restricted(api, obj) for obj in objects]
    assert list(filter(None, problems)) == []


def applied(api: Api, obj: Object) -> str:
    """Why the API server refuses an object, in a dry run that allows no unknown field."""
    metadata = obj["metadata"]
    if obj["kind"] == "Pod":
        # Another hook makes the account, which a dry run does not.
        obj["spec"].pop("serviceAccountName", None)
    path = api.path(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""))
    try:
        api.request("PATCH", f"{path}/{metadata['name']}", obj, content_type=APPLY, params=STRICT)
    except ApiError as error:
        return f"{obj['kind']} {metadata['name']}: {error.message}"
    return ""


def restricted(api: Api, obj: Object) -> str:
    """Why Pod Security `restricted` refuses the Pods that an object makes."""
    spec = pod_spec(obj)
    if spec is None:
        return ""
    spec["serviceAccountName"] = "default"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "dry", "namespace": RESTRICTED},
        "spec": spec,
    }
    try:
        api.request("POST", api.path("v1", "Pod", RESTRICTED), pod, params={"dryRun": "All"})
    except ApiError as error:
        return f"Pods of {obj['kind']} {obj['metadata']['name']}: {error.message}"
    return ""
