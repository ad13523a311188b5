"""What the values say of Pods is in every workload, and what selects Pods finds those."""

from collections import Counter
from typing import Any

import pytest
import yaml

from tests.charts.rendering import Object, expanded, manifests, render
from tests.charts.toggles import CHARTS as TOGGLES
from tests.charts.toggles import COMMON, DIGEST, POD, VOLUMES, Values, merged
from tests.dsf.agent.test_memory import CHART_ENVIRONMENT, CHART_LIMIT, MIB

SELECTORS = {
    "Service": lambda spec: spec["selector"],
    "Deployment": lambda spec: spec["selector"]["matchLabels"],
    "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
    "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
    "PodMonitor": lambda spec: spec["selector"]["matchLabels"],
}
"""How each kind says which Pods it means. A ServiceMonitor names Services instead."""
ACCOUNTS = {
    "dynamic-scoring-agent": "dynamic-scoring-agent-sa",
    "dynamic-scoring-dispatcher": "dynamic-scoring-dispatcher",
}
"""The ServiceAccount of Deployments whose values can't name another."""
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


def test_the_agents_limit_of_memory_is_the_one_that_hostile_answers_are_tried_with() -> None:
    objects = deployments(expanded(render("dynamic-scoring-framework", {}, release="two")))
    [agent] = [obj for obj in objects if obj["metadata"]["name"] == "dynamic-scoring-agent"]
    [container] = agent["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == f"{CHART_LIMIT // MIB}Mi"
    assert {entry["name"]: entry["value"] for entry in container["env"]} == CHART_ENVIRONMENT


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
    seen = Counter[str]()
    for obj in objects:
        if obj["kind"] in SELECTORS:
            wanted, among = SELECTORS[obj["kind"]](obj["spec"]), pods
        elif obj["kind"] == "ServiceMonitor":
            wanted, among = obj["spec"]["selector"]["matchLabels"], services
        else:
            continue
        seen[obj["kind"]] += 1
        assert selected(obj["metadata"].get("namespace"), wanted, among) == 1, obj["metadata"]
    # Nothing that has metrics is left out.
    everywhere = {"Service", "Deployment", "NetworkPolicy", *MONITORS}
    assert {seen[kind] for kind in everywhere} == {len(pods)}


@CASES
def test_the_labels_and_annotations_of_all_objects_are_on_each(chart: str, values: Values) -> None:
    platform = {"commonLabels": {"app.kubernetes.io/part-of": "platform"}}
    for obj in expanded(render(chart, merged([values, platform]), release="two")):
        if obj["kind"] == "Namespace":
            continue  # Another add-on may have it too, and OCM would set the labels in turn.
        metadata = obj["metadata"]
        assert (
            metadata["labels"].items()
            >= {
                "app.kubernetes.io/name": chart,
                "app.kubernetes.io/part-of": "platform",
                **COMMON["commonLabels"],
            }.items()
        ), metadata
        assert metadata["annotations"].items() >= COMMON["commonAnnotations"].items(), metadata


@CASES
def test_no_key_is_there_twice(chart: str, values: Values) -> None:
    """Helm takes the last one; kustomize, Flux and strict validators refuse the manifest."""
    platform = {"commonLabels": {"app.kubernetes.io/part-of": "platform"}}
    text = manifests(chart, merged([values, platform]))
    list(yaml.load_all(text, Loader=StrictLoader))


class StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses a mapping with the same key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{keys} at {node.start_mark}"
        return dict(super().construct_mapping(node, deep))


@CASES
def test_the_pods_of_helm_test_pass_the_network_policies(chart: str, values: Values) -> None:
    objects = render(chart, values)
    policies = [obj["spec"] for obj in objects if obj["kind"] == "NetworkPolicy"]
    asked = [pod for pod in objects if pod["kind"] == "Pod" and "app" in pod["metadata"]["labels"]]
    assert len(asked) == len(policies)
    for pod in asked:
        labels = {"app": pod["metadata"]["labels"]["app"]}
        peer = {"podSelector": {"matchLabels": labels}}
        allowing = [spec for spec in policies if peer in spec["ingress"][0]["from"]]
        [spec] = allowing
        [app] = spec["podSelector"]["matchLabels"].values()
        assert f"//{app}." in pod["spec"]["containers"][0]["args"][-1]


def test_the_test_of_the_add_on_runs_on_the_nodes_of_the_hub() -> None:
    """The values name nodes and priorities of the managed clusters."""
    objects = render("policy-watcher", ON_THE_HUB)
    [pod] = [obj["spec"] for obj in objects if obj["kind"] == "Pod"]
    assert pod["imagePullSecrets"] == POD["scheduling"]["imagePullSecrets"]
    assert not {"nodeSelector", "priorityClassName", "affinity"} & pod.keys()


def selected(namespace: str | None, wanted: dict[str, Any], among: list[Any]) -> int:
    """How many have the wanted labels in a namespace."""
    return sum(place == namespace and wanted.items() <= labels.items() for place, labels in among)


WRITES = {"create", "patch", "update", "delete"}
TELLS = {
    *("placementplans/status", "placementoptimizations/status", "events", "leases"),
    *("tokenreviews", "subjectaccessreviews"),
}
"""What the optimizer writes to ask who may do what, and to tell what it found."""
RECORDS = {"secrets", "placementplans", "placementoptimizations"}
IMPERSONATION = TOGGLES["dynamic-scoring-optimizer"]["impersonation"]


@pytest.mark.parametrize(
    ("values", "written", "named"),
    [
        ({}, TELLS, set()),
        ({"auth": IMPERSONATION["auth"]}, TELLS, set()),
        (IMPERSONATION, TELLS | RECORDS, {"oidc:ann@example.com", "oidc:placers", "planner"}),
        ({"allowWrites": True}, TELLS | RECORDS | {"placements", "placementbindings"}, set()),
    ],
)
def test_the_optimizer_may_write_only_what_its_values_allow(
    values: Values, written: set[str], named: set[str]
) -> None:
    objects = render("dynamic-scoring-optimizer", values)
    roles = [obj for obj in objects if "rules" in obj]
    # The Secret of its certificate, by name, is no record.
    others = ("-writer", "-self-signed")
    own = [role for role in roles if not role["metadata"]["name"].endswith(others)]
    rules = [rule for role in own for rule in role["rules"]]
    found = {each for rule in rules if WRITES & {*rule["verbs"]} for each in rule["resources"]}
    assert found == written
    names = [rule["resourceNames"] for rule in rules if rule["verbs"] == ["impersonate"]]
    assert {name for each in names for name in each} == named
