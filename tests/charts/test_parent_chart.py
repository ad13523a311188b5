"""What people expect of every chart: a parent's choices, either spelling, objects of their own."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.charts.rendering import CHARTS, Object, expanded, pod_spec, render
from tests.charts.toggles import CHARTS as TOGGLES
from tests.charts.toggles import Values

CORE_SECRETS = {"apiGroup": "", "resource": "secrets", "namespace": "shop"}
OPTIMIZER = "dynamic-scoring-optimizer"


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    dependencies = []
    for chart in TOGGLES:
        shutil.copytree(CHARTS / chart, folder / "charts" / chart)
        version = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())["version"]
        entry = {"name": chart, "version": version, "condition": f"{chart}.enabled"}
        dependencies.append(entry)
    about = {"apiVersion": "v2", "name": "fleet", "version": "1.0.0"}
    (folder / "Chart.yaml").write_text(yaml.safe_dump({**about, "dependencies": dependencies}))
    return folder


def rendered(parent: Path, values: Values) -> list[Object]:
    return expanded(render("fleet", values, source=parent))


def owners(objects: list[Object]) -> set[str]:
    labels = (obj["metadata"].get("labels", {}) for obj in objects)
    return {of["app.kubernetes.io/name"] for of in labels if "app.kubernetes.io/name" in of}


@pytest.mark.parametrize("chosen", TOGGLES)
def test_a_condition_leaves_charts_out(parent: Path, chosen: str) -> None:
    values = {chart: {"enabled": chart == chosen} for chart in TOGGLES}
    assert owners(rendered(parent, values)) == {chosen}


def test_every_pod_pulls_from_the_registry_of_the_fleet(parent: Path) -> None:
    values = {
        "global": {
            "imageRegistry": "mirror.example:5000/dsf",
            "imagePullSecrets": ["fleet", {"name": "other"}],
        },
        OPTIMIZER: {"image": {"registry": "own.example"}},
    }
    objects = rendered(parent, values)
    assert owners(objects) == {*TOGGLES}
    for obj in objects:
        if not (pod := pod_spec(obj)):
            continue
        assert [*pod["imagePullSecrets"][-2:]] == [{"name": "fleet"}, {"name": "other"}]
        own = obj["metadata"]["labels"]["app.kubernetes.io/name"] == OPTIMIZER
        host = "own.example/" if own else "mirror.example:5000/dsf/"
        projects = ("open-cluster-management/dynamic-scoring-framework:", "dynamic-scoring/sample")
        image = pod["containers"][0]["image"]
        assert image.startswith(tuple(host + project for project in projects))


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ({"repository": "mirror.example/team/dsf"}, "mirror.example/team/dsf:1"),
        ({"repository": "team/dsf"}, "team/dsf:1"),
        ({"name": "dsf", "registry": "mirror.example"}, "mirror.example/dsf:1"),
        ({"repository": "localhost/dsf", "registry": "mirror.example"}, "mirror.example/dsf:1"),
    ],
)
def test_an_image_is_named_in_either_spelling(given: Values, image: str) -> None:
    objects = render(OPTIMIZER, {"image": {"tag": "1", **given}})
    [pod] = [obj["spec"]["template"]["spec"] for obj in objects if obj["kind"] == "Deployment"]
    assert pod["containers"][0]["image"] == image


@pytest.mark.parametrize(
    ("chart", "values", "message"),
    [
        (
            "dynamic-scoring-framework",
            {"spokeSetting": {"agent": {"image": {"name": "a", "repository": "b"}}}},
            "spokeSetting.agent.image.repository: b, but spokeSetting.agent.image.name is a",
        ),
        (
            "dynamic-scoring-framework",
            {"hubSetting": {"resourceController": {"replicas": 3, "replicaCount": 4}}},
            "resourceController.replicaCount: 4, but hubSetting.resourceController.replicas is 3",
        ),
        ("sample-scorers", {"replicas": 3, "replicaCount": 4}, "replicaCount: 4, but replicas is"),
        (
            OPTIMIZER,
            {"podDisruptionBudget": {"enabled": True, "minAvailable": 1, "maxUnavailable": 0}},
            "podDisruptionBudget: minAvailable is 1 and maxUnavailable is 0",
        ),
        (
            "dynamic-scoring-framework",
            {"spokeSetting": {"agent": {"readableResources": [CORE_SECRETS]}}},
            "spokeSetting.agent.readableResources: names Secrets",
        ),
        ("policy-watcher", {"replicaCount": 2}, "'replicaCount' not allowed"),
        ("policy-watcher", {"enabled": False}, "/enabled"),
    ],
)
def test_two_spellings_at_once_and_what_a_chart_has_not_are_refused(
    chart: str, values: Values, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        render(chart, values)


def test_templates_in_objects_of_a_user_are_filled_in() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-text'}"
    values = {"extraObjects": [text, {"kind": "Own", "metadata": {"name": "{{ .Release.Name }}"}}]}
    for chart in TOGGLES:
        objects = render(chart, values, release="mine")
        names = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
        assert {("ConfigMap", "mine-text"), ("Own", "mine")} <= names


def test_without_rbac_a_chart_makes_no_role_on_its_cluster() -> None:
    for chart in ("dynamic-scoring-framework", OPTIMIZER, "policy-watcher"):
        objects = render(chart, {"rbac": {"create": False}})
        installed = [
            obj["kind"]
            for obj in objects
            if "helm.sh/hook" not in obj["metadata"].get("annotations", {})
        ]
        assert not [kind for kind in installed if "Role" in kind]


def test_a_monitor_elsewhere_selects_the_namespace_of_its_target() -> None:
    elsewhere = {"enabled": True, "namespace": "monitoring", "scrapeTimeout": "9s"}
    objects = render(OPTIMIZER, {"metrics": {"serviceMonitor": elsewhere}})
    [monitor] = [obj for obj in objects if obj["kind"] == "ServiceMonitor"]
    assert monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["dsf"]}
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["scrapeTimeout"] == "9s"
    # A monitor names Secrets of its own namespace, and the authority is in that of the release.
    assert "tlsConfig" not in endpoint
