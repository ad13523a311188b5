"""Each value of the earlier release is accepted by the charts, and has the effect that it had."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dsf import __version__
from tests.charts.rendering import CHARTS, Object, expanded, render
from tests.charts.toggles import PEERS, VOLUMES, Values, merged
from tests.earlier_release import charts

CORE, OPTIMIZER, WATCHER = charts.CHARTS
OTHER_IMAGE = {"name": "registry.example/dsf", "tag": "9", "pullPolicy": "Always"}
OTHER_SCORERS = {
    "allowedHosts": ["*.example"],
    "deniedHosts": ["bad.example"],
    "allowedCIDRs": ["10.0.0.0/8"],
    "deniedCIDRs": ["10.9.0.0/16"],
}
OTHER_RESOURCES = {"requests": {"cpu": "51m", "memory": "97Mi"}, "limits": {"memory": "257Mi"}}
DEFAULTS: dict[str, Values] = {
    CORE: {
        "hubSetting": {
            "namespace": "open-cluster-management",
            "resourceController": {"writes": {"latencyFactor": 2}},
        }
    },
    OPTIMIZER: {},
    WATCHER: {"clusterName": "east"},
}
"""What 0.1.0 asked for, had as its default, or is said to be a step of the upgrade."""
WITH_RIGHTS_OF_THEN: dict[str, Values] = {
    OPTIMIZER: {
        "manifestWorks": {"read": False},
        "auth": {"impersonated": {"users": ["ann"], "groups": ["placers"]}},
    }
}
"""Values of today by which the charts grant what those of 0.1.0 did: the steps of the upgrade."""
LEAST_RIGHTS = {
    OPTIMIZER: {
        # Impersonated by name, each in its namespace, and no rights to write before allowWrites.
        ("added", "ClusterRole", OPTIMIZER, "rules.resources", "serviceaccounts"),
        ("removed", "Role", OPTIMIZER, "rules.verbs", "delete"),
    }
}
"""Rights of 0.1.0 that the charts grant no more."""
PLAIN_HTTP: dict[str, Values] = {OPTIMIZER: {"tls": {"source": "None"}}}
"""What 0.1.0 served unless a value of it said otherwise: also a step."""
CHANGED: dict[str, Values] = {
    CORE: {
        "hubSetting": {
            "namespace": "hub",
            **VOLUMES,
            "skipClusterSetBinding": True,
            "resourceController": {
                "image": OTHER_IMAGE,
                "replicas": 3,
                "leaderElection": {
                    "leaseDuration": "16s",
                    "renewDeadline": "11s",
                    "retryPeriod": "3s",
                },
                "resyncSeconds": 31,
                "probePeriodSeconds": 11,
                "unhealthyThreshold": 4,
                "healthyThreshold": 3,
                "distributeSecrets": True,
                "manifestNamespaces": ["shop"],
                "writes": {"minimum": 2, "maximum": 33, "latencyFactor": 3},
                "scorers": {
                    **OTHER_SCORERS,
                    "certificateAuthority": "/etc/ca/ca.crt",
                    "timeoutSeconds": 6,
                },
                "resources": OTHER_RESOURCES,
            },
            "addonController": {"image": OTHER_IMAGE},
        },
        "spokeSetting": {
            "namespace": "agents",
            "agent": {
                "secretNames": ["token"],
                "maxSeries": 500,
                "answersInFlight": 50,
                "prometheusURL": "http://prometheus.example:9090",
                "scorers": OTHER_SCORERS,
                "serviceAccountTokenHosts": ["*.example"],
                "otlp": {"enabled": True, "allowedFrom": PEERS},
                "image": OTHER_IMAGE,
                "resources": OTHER_RESOURCES,
            },
        },
        "addOn": {
            "installStrategy": "Manual",
            "manager": {"namespace": "ocm", "serviceAccount": "manager"},
        },
        "crds": {"install": False},
    },
    OPTIMIZER: {
        "image": OTHER_IMAGE,
        "namespaces": ["default", "shop"],
        "crds": {"install": False},
        "planHistoryLimit": 11,
        "rollouts": {"enabled": True},
        "clusterLabelKey": "name",
        "missingScore": 5,
        "defaultTolerationSeconds": 301,
        "preferNoSelectCost": 11,
        "solver": {"name": "cbc", "timeLimitSeconds": 31, "gap": 0.5, "maxPlaces": 1000},
        "mig": {"generatePolicies": True, "labels": "guide", "configMap": "mig/layouts"},
        "auth": {
            "mode": "kubernetes",
            "audiences": ["other"],
            "oauthIssuers": ["https://issuer.example"],
            "resourceURL": "https://scores.example",
            "requestsPerSecond": 51,
            "impersonate": True,
        },
        "tls": {"secretName": "tls"},
        "allowWrites": True,
        "mcp": {"whenClientCannotAsk": "deny"},
        "connections": {"maximum": 513, "headSeconds": 11, "bodySeconds": 61, "stalledSeconds": 62},
        "resources": OTHER_RESOURCES,
    },
    WATCHER: {
        "image": OTHER_IMAGE,
        "clusterName": "west",
        "pollIntervalSeconds": 31,
        "stableDurationSeconds": 121,
        "claimName": "other",
        "resources": OTHER_RESOURCES,
    },
}
"""Another value for each of 0.1.0, except where it had only one."""
ONLY_ONE = {"auth.mode"}


@pytest.mark.parametrize("chart", charts.CHARTS)
def test_each_value_has_the_effect_that_it_had(chart: str) -> None:
    assert set(unchanged(charts.values(chart), CHANGED[chart])) <= ONLY_ONE
    before, now = (effect(chart, earlier=earlier) for earlier in (True, False))
    assert before
    assert before - now == LEAST_RIGHTS.get(chart, set())


def test_values_of_the_first_implementation_choose_images_and_namespaces() -> None:
    """All that its chart had. It deployed an add-on controller of its own, which is OCM's now."""
    image = {"name": "quay.io/dynamic-scoring/agent", "tag": "latest", "pullPolicy": "Always"}
    values = {
        "hubSetting": {
            "namespace": "scoring",
            **VOLUMES,
            "skipClusterSetBinding": True,
            "resourceController": {"image": {**image, "name": "quay.io/controller"}},
            "addonController": {"image": image},
        },
        "spokeSetting": {"namespace": "agents", "agent": {"image": image}},
    }
    objects = expanded(render(CORE, values))
    images = {
        obj["metadata"]["namespace"]: obj["spec"]["template"]["spec"]["containers"][0]["image"]
        for obj in objects
        if obj["kind"] == "Deployment"
    }
    chosen = {
        "scoring": "quay.io/controller:latest",
        "agents": "quay.io/dynamic-scoring/agent:latest",
    }
    assert images == chosen
    assert not [obj for obj in objects if obj["kind"] == "ManagedClusterSetBinding"]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("hubSetting.resourceController", "dynamic-scoring-controller"),
        ("spokeSetting.agent", "dynamic-scoring-addon"),
    ],
)
def test_images_of_the_first_implementation_are_refused(value: str, name: str) -> None:
    """They know none of the arguments with which the Pods start them."""
    setting, component = value.split(".")
    image = {"name": f"quay.io/open-cluster-management/{name}", "tag": "latest"}
    with pytest.raises(ValueError, match=rf"{value}\.image\.name: .*{name} is .* Leave it out"):
        render(CORE, {setting: {component: {"image": image}}})


def unchanged(values: Values, changed: Values, path: str = "") -> Iterator[str]:
    """The paths of values that are the same, or missing, among the changed ones."""
    for name, value in values.items():
        other = changed.get(name)
        if isinstance(value, dict) and value:
            yield from unchanged(value, other or {}, f"{path}{name}.")
        elif other in (None, value):
            yield f"{path}{name}"


def effect(chart: str, *, earlier: bool) -> set[tuple[str, ...]]:
    """What the changed values add to the rendered objects, and what they remove."""
    default, changed = (
        Counter(rendered(chart, values, earlier=earlier))
        for values in (DEFAULTS[chart], CHANGED[chart])
    )
    added, removed = changed - default, default - changed
    return {("added", *entry) for entry in added} | {("removed", *entry) for entry in removed}


def rendered(chart: str, values: Values, *, earlier: bool) -> Iterator[tuple[str, ...]]:
    """The scalars in the objects of a chart, with kind, name and path of each."""
    source = charts.package(chart) if earlier else CHARTS / chart
    then = {**PLAIN_HTTP.get(chart, {}), **values}
    asked = values if earlier else merged([WITH_RIGHTS_OF_THEN.get(chart, {}), then])
    for obj in expanded(render(chart, asked, source=source)):
        for path, value in compared(obj):
            of_any = str(value).replace(charts.VERSION if earlier else __version__, "VERSION")
            yield obj["kind"], obj["metadata"]["name"], path, of_any


def compared(obj: Object) -> Iterator[tuple[str, Any]]:
    """The scalars of an object, without the label of the chart's version.

    What an AddOnTemplate contains is among the objects. A CRD is judged in tests/dsf/api/crd.
    """
    if obj["kind"] == "CustomResourceDefinition":
        yield "metadata.name", obj["metadata"]["name"]
    elif obj["kind"] != "AddOnTemplate":
        obj["metadata"].get("labels", {}).pop("helm.sh/chart", None)
        yield from leaves(obj)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The scalars in a JSON value with their paths; the place in a list is not in the path."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path, value
