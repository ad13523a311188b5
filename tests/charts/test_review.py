"""What a reviewer of charts asks: documents, schemas, sound Pods, example values."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts import readme
from tests.charts.programs import program
from tests.charts.rendering import CHARTS, expanded, render
from tests.charts.toggles import CHARTS as TOGGLES
from tests.charts.toggles import EXAMPLES, PROFILES, Values, merged
from tests.repository import ROOT

NOT_ASKED = {
    "container-image-pull-policy": "tags are versions; a digest is for those who doubt it",
    "container-security-context-user-group-id": "the image has 65532; OpenShift chooses its own",
    "pod-probes-identical": "a scorer that serves is a scorer that is ready",
    "deployment-has-host-podantiaffinity": "topologySpreadConstraints do it",
    "deployment-replicas": "one writer of a claim, of the plans in memory, of a cluster's scores",
    "deployment-strategy": "as above: the new Pod starts after the old one ended",
}
"""Checks of kube-score that are left out, and why. So is the CPU limit, because it throttles."""

everyone = pytest.mark.parametrize("chart", TOGGLES)


@everyone
def test_the_readme_is_what_helm_docs_makes_of_the_values(tmp_path: Path, chart: str) -> None:
    copy = tmp_path / "charts"
    shutil.copytree(CHARTS, copy)
    readme.write(copy)
    made = (copy / chart / "README.md").read_text()
    assert (CHARTS / chart / "README.md").read_text() == made, "run `make charts`"


@everyone
def test_every_value_is_described_and_in_the_schema(chart: str) -> None:
    text = (CHARTS / chart / "README.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows if not row[-1].strip(" |")] == []
    schema = json.loads((CHARTS / chart / "values.schema.json").read_text())
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    assert list(unknown(values, schema, schema["$defs"])) == []


def unknown(values: Values, schema: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """The keys of values that a schema would let pass without looking."""
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    schema = definitions[reference] if reference else schema
    if "properties" not in schema:
        return []
    missing = [key for key in values if key not in schema["properties"]]
    return missing + [
        f"{key}.{name}"
        for key, value in values.items()
        if isinstance(value, dict) and key in schema["properties"]
        for name in unknown(value, schema["properties"][key], definitions)
    ]


def test_the_same_definition_is_the_same_in_every_schema() -> None:
    found: dict[str, Any] = {}
    for chart in TOGGLES:
        schema = json.loads((CHARTS / chart / "values.schema.json").read_text())
        for name, definition in schema["$defs"].items():
            assert found.setdefault(name, definition) == definition, (chart, name)


@everyone
def test_helm_lint_finds_nothing(tmp_path: Path, chart: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(merged(list(TOGGLES[chart].values()))))
    command = [program("helm"), "lint", "--strict", str(CHARTS / chart), f"--values={values}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, "[WARNING]" in ended.stdout) == (0, False), ended.stdout


@everyone
def test_kube_score_finds_nothing(tmp_path: Path, chart: str) -> None:
    policies = [value for name, value in TOGGLES[chart].items() if name.endswith("policy")]
    objects = [
        obj
        for obj in expanded(render(chart, merged(policies)))
        if "helm.sh/hook" not in obj["metadata"].get("annotations", {})
    ]
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    ignored = [f"--ignore-test={name}" for name in NOT_ASKED]
    command = [program("kube-score"), "score", "--kubernetes-version=v1.30", "--output-format=ci"]
    ended = subprocess.run(
        [*command, "--ignore-container-cpu-limit", *ignored, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = ended.stdout.splitlines()
    assert [line for line in found if not line.startswith(("[OK]", "[SKIPPED]"))] == []
    assert len(found) > 3


@everyone
def test_the_test_pods_succeed_only_if_the_url_answers(chart: str) -> None:
    values = {"clusterName": "east"} if chart == "policy-watcher" else {}
    pods = [obj for obj in render(chart, values) if obj["kind"] == "Pod"]
    assert pods
    with serving() as url:
        for pod in pods:
            [container] = pod["spec"]["containers"]
            *_, script, asked = container["args"]
            assert asked.endswith(("/readyz", "/healthz"))
            for address, code in ((url, 0), ("http://127.0.0.1:1/readyz", 1)):
                command = [sys.executable, "-c", script, address]
                ended = subprocess.run(command, capture_output=True, check=False)
                assert ended.returncode == code, ended.stderr


@contextmanager
def serving() -> Iterator[str]:
    """The URL of a server on loopback that answers every GET."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("chart", ["dynamic-scoring-framework", "dynamic-scoring-optimizer"])
def test_values_of_an_earlier_version_are_told_from_mistakes(chart: str) -> None:
    """As with --reuse-values: helm then takes no default of the new chart."""
    with pytest.raises(ValueError, match="run helm upgrade with --reset-then-reuse-values"):
        render(chart, {"commonLabels": None})


@everyone
def test_what_would_break_the_pods_is_refused_with_its_path(chart: str) -> None:
    pod: Values = {
        "serviceAccount": {"create": False},
        "image": {"name": "registry.example:5000/dsf:1"},
        "resources": {"limits": {"memory": "lots"}},
    }
    paths = ["serviceAccount/name", "image/name", "resources/limits/memory"]
    if chart == "sample-scorers":
        pod["scorers"] = {"sample-scorer": {"image": pod.pop("image")}}
        paths[1] = "scorers/sample-scorer/image/name"
    volumes = {"extraVolumes": [{"emptyDir": {}}]}
    core = chart == "dynamic-scoring-framework"
    inside = "hubSetting/resourceController/" if core else ""
    values = {"hubSetting": {"resourceController": pod, **volumes}} if core else {**pod, **volumes}
    with pytest.raises(ValueError, match="specifications of the schema") as refused:
        render(chart, {**values, "commonLabels": {"app": "mine"}})
    expected = [f"/{inside}{path}" for path in paths]
    expected += [f"/{'hubSetting/' if core else ''}extraVolumes/0", "/commonLabels/app"]
    assert {*re.findall("at '(.+?)':", str(refused.value))} >= {*expected}


@pytest.mark.parametrize(
    ("chart", "values", "named"),
    [
        ("dynamic-scoring-framework", {"spokeSetting": {"namespace": "A b"}}, "/spokeSetting/name"),
        ("dynamic-scoring-optimizer", {"namespaces": ["Team_A"]}, "/namespaces/0"),
        ("dynamic-scoring-optimizer", {"namespaces": ["a", "a"]}, "/namespaces"),
        ("dynamic-scoring-optimizer", {"auth": {"audiences": None}}, "/auth"),
        ("dynamic-scoring-optimizer", {"tls": {"source": "Secret"}}, "tls.secretName: empty"),
        (
            "dynamic-scoring-optimizer",
            {"tls": {"source": "None", "secretName": "own"}},
            "tls.secretName: own, but tls.source is None",
        ),
        (
            "dynamic-scoring-optimizer",
            {"tls": {"source": "CertManager"}},
            "tls.certManager.issuerRef.name: empty",
        ),
        (
            "dynamic-scoring-framework",
            {"spokeSetting": {"agent": {"otlp": {"enabled": True}}}},
            "spokeSetting.agent.otlp.allowedFrom: empty",
        ),
        (
            "dynamic-scoring-framework",
            {"spokeSetting": {"agent": {"push": {"enabled": True}}}},
            "spokeSetting.agent.push.allowedFrom: empty",
        ),
        (
            "dynamic-scoring-framework",
            {"spokeSetting": {"agent": {"push": {"minInterval": "0s"}}}},
            "/push/minInterval",
        ),
        ("policy-watcher", {"clusterName": "A b"}, "/clusterName"),
        ("policy-watcher", {"claimName": "A b"}, "/claimName"),
        ("sample-scorers", {"scorers": {"mine": {"enabled": True}}}, "/scorers/mine"),
        ("sample-scorers", {"autoscaling": {"minReplicas": 9}}, "autoscaling.minReplicas: 9"),
    ],
)
def test_what_the_api_server_would_refuse_is_named(chart: str, values: Values, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        render(chart, values)


@pytest.mark.parametrize("chart", ["dynamic-scoring-framework", "policy-watcher"])
def test_a_version_with_build_metadata_makes_a_valid_name(tmp_path: Path, chart: str) -> None:
    copy = tmp_path / chart
    shutil.copytree(CHARTS / chart, copy)
    about = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.2.0+abc"}))
    objects = render(chart, {}, source=copy)
    [name] = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "AddOnTemplate"]
    [addon] = [obj["spec"] for obj in objects if obj["kind"] == "ClusterManagementAddOn"]
    assert name == f"{chart}-0.2.0-abc" == addon["supportedConfigs"][0]["defaultConfig"]["name"]


@pytest.mark.parametrize("chart", ["dynamic-scoring-framework", "policy-watcher"])
def test_the_readme_names_a_container_that_the_add_on_has(chart: str) -> None:
    [example] = set(
        re.findall(r"`deployments:(\S+):(\S+)`", (CHARTS / chart / "README.md").read_text())
    )
    assert example in {
        (obj["metadata"]["name"], container["name"])
        for obj in expanded(render(chart, {}))
        if obj["kind"] == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    }


@pytest.mark.parametrize(("file", "chart"), EXAMPLES.items())
def test_the_example_values_are_those_of_the_chart(file: str, chart: str) -> None:
    assert render(chart, yaml.safe_load((ROOT / file).read_text()))
    command = [program("helm"), "lint", "--strict", str(CHARTS / chart), f"--values={ROOT / file}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, "[WARNING]" in ended.stdout) == (0, False), ended.stdout


@everyone
def test_the_readme_begins_with_three_values_and_a_file_for_each_purpose(chart: str) -> None:
    begin, _, _ = (CHARTS / chart / "README.md").read_text().partition("```bash")
    named = re.findall(r"^\| `([\w.]+)` \|", begin, re.MULTILINE)
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    assert len(named) == 3
    assert {path.partition(".")[0] for path in named} <= values.keys()
    files = re.findall(r"\(values/([\w-]+)\.yaml\)", begin)
    assert (*files,) == PROFILES
    assert {file.stem for file in (CHARTS / chart / "values").iterdir()} == {*PROFILES}


def test_two_releases_of_the_optimizer_share_no_object_but_the_crds() -> None:
    names = [
        {
            (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"])
            for obj in render("dynamic-scoring-optimizer", {}, release=release)
            if obj["kind"] != "CustomResourceDefinition"
        }
        for release in ("dynamic-scoring-optimizer", "second")
    ]
    assert names[0] & names[1] == set()


@pytest.mark.parametrize(
    ("namespace", "given", "lands"),
    [
        ("default", "", "open-cluster-management"),
        ("scores", "", "scores"),
        ("scores", "hub", "hub"),
    ],
)
def test_the_core_lands_in_the_releases_namespace(namespace: str, given: str, lands: str) -> None:
    values = {"hubSetting": {"namespace": given}}
    objects = render("dynamic-scoring-framework", values, namespace=namespace)
    assert {obj["metadata"].get("namespace", lands) for obj in objects} == {lands}


def test_the_optimizers_public_hosts_are_allowed() -> None:
    values = {
        "ingress": {"enabled": True, "hosts": ["a.example"]},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "g"}], "hostnames": ["b.example"]},
        "allowedHosts": ["c.example"],
    }
    objects = render("dynamic-scoring-optimizer", values)
    [deployment] = [obj for obj in objects if obj["kind"] == "Deployment"]
    words = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {f"--allowed-host={name}.example" for name in "abc"} <= set(words)
