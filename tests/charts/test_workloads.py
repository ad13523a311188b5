"""What the values say of Pods is in every workload, and what selects Pods finds those."""

from typing import Any

import pytest

from tests.charts.rendering import Object, expanded, render
from tests.charts.toggles import CHARTS as TOGGLES
from tests.charts.toggles import DIGEST, POD, VOLUMES, Values, merged

SELECTORS = {
    "Service": lambda spec: spec["selector"],
    "Deployment": lambda spec: spec["selector"]["matchLabels"],
    "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
    "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
    "PodMonitor": lambda spec: spec["selector"]["matchLabels"],
}
"""How each kind says which Pods it means. A ServiceMonitor names Services instead."""
ACCOUNTS = {"dynamic-scoring-agent": "dynamic-scoring-agent-sa"}
"""The ServiceAccount of Deployments whose values can't name another: the contract fixes it."""
WITHOUT_DIGEST = {"sample-scorer", "static-scorer", "simple-prediction-scorer"}
"""Each sample scorer has an image of its own, and the toggles name that of another by digest."""

POLICIES = {"NetworkPolicy", "PodDisruptionBudget"}
MONITORS = {"ServiceMonitor", "PodMonitor"}
ROUTES = {"Ingress", "HTTPRoute"}
KINDS = {
    "dynamic-scoring-framework": {*POLICIES, *MONITORS, "PrometheusRule", "ConfigMap"},
    "dynamic-scoring-optimizer": {*POLICIES, *MONITORS, *ROUTES, "PrometheusRule", "ConfigMap"},
    "policy-watcher": {"NetworkPolicy", *MONITORS},
    "sample-scorers": {*POLICIES, *MONITORS, *ROUTES, "HorizontalPodAutoscaler"},
}
"""What each chart can add to its Deployments. The ConfigMaps are dashboards."""

ALL = {
    # One replica would have no PodDisruptionBudget.
    chart: merged([values for name, values in toggles.items() if name != "one replica"])
    for chart, toggles in TOGGLES.items()
}
ON_THE_HUB = {**ALL["policy-watcher"], "clusterName": ""}
CASES = pytest.mark.parametrize(
    ("chart", "values"),
    [*ALL.items(), ("policy-watcher", ON_THE_HUB)],
    ids=[*ALL, "policy-watcher-addon"],
)


def deployments(objects: list[Object]) -> list[Object]:
    found = [obj for obj in objects if obj["kind"] == "Deployment"]
    assert found
    return found


@CASES
def test_every_pod_has_what_its_values_say(chart: str, values: Values) -> None:
    for deployment in deployments(expanded(render(chart, values, release="two"))):
        template = deployment["spec"]["template"]
        pod, metadata = template["spec"], template["metadata"]
        [container] = pod["containers"]
        assert pod["serviceAccountName"] == ACCOUNTS.get(deployment["metadata"]["name"], "own")
        assert pod.items() >= POD["scheduling"].items()
        assert metadata["labels"].items() >= POD["pod"]["podLabels"].items()
        assert metadata["annotations"].items() >= POD["pod"]["podAnnotations"].items()
        assert all(entry in container["env"] for entry in POD["environment"]["extraEnv"])
        assert all(volume in pod["volumes"] for volume in VOLUMES["extraVolumes"])
        assert all(mount in container["volumeMounts"] for mount in VOLUMES["extraVolumeMounts"])
        assert container["startupProbe"]["periodSeconds"] == 5
        assert container["livenessProbe"]["timeoutSeconds"] == 9
        assert "httpGet" in container["readinessProbe"]
        assert {"requests", "limits"} <= container["resources"].keys()
        by_tag = deployment["metadata"]["name"] in WITHOUT_DIGEST
        assert container["image"].endswith(DIGEST) != by_tag
        empty = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
        assert all("sizeLimit" in directory for directory in empty)


@CASES
def test_each_kind_that_a_chart_offers_is_there(chart: str, values: Values) -> None:
    objects = expanded(render(chart, values))
    optional = set().union(*KINDS.values())
    assert {obj["kind"] for obj in objects} & optional == KINDS[chart]


@CASES
def test_what_selects_pods_finds_those_of_its_release(chart: str, values: Values) -> None:
    objects = expanded(render(chart, values, release="two"))
    pods = [
        (obj["metadata"].get("namespace"), obj["spec"]["template"]["metadata"]["labels"])
        for obj in deployments(objects)
    ]
    services = [
        (obj["metadata"].get("namespace"), obj["metadata"]["labels"])
        for obj in objects
        if obj["kind"] == "Service"
    ]
    seen = set()
    for obj in objects:
        if obj["kind"] in SELECTORS:
            wanted, among = SELECTORS[obj["kind"]](obj["spec"]), pods
        elif obj["kind"] == "ServiceMonitor":
            wanted, among = obj["spec"]["selector"]["matchLabels"], services
        else:
            continue
        seen.add(obj["kind"])
        assert selected(obj["metadata"].get("namespace"), wanted, among) == 1, obj["metadata"]
    assert {"Service", "Deployment", "NetworkPolicy"} <= seen


def selected(namespace: str | None, wanted: dict[str, Any], among: list[Any]) -> int:
    """How many have the wanted labels in a namespace."""
    return sum(place == namespace and wanted.items() <= labels.items() for place, labels in among)
