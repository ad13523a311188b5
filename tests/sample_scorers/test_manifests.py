"""The manifests and images that the READMEs deploy."""

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.assess.config_resolution import Resolved, resolve
from sample_scorers.ai_workload.app import (
    AiWorkloadSettings,
    efficiency_config,
    idle_config,
    performance_config,
    power_config,
)
from sample_scorers.latency.score import config as latency_config
from sample_scorers.prediction.score import config as prediction_config
from sample_scorers.sample.score import config as sample_config
from tests.sample_scorers.applications import APPS, NO_MODEL, SHIPPED
from tests.sample_scorers.requirements import expected
from tests.sample_scorers.serving import SCORERS, run

SCORER_FILES = sorted(SCORERS.glob("*/manifests/dynamicscorer.yaml"))
FOLDERS = sorted(file.parent for file in SCORER_FILES)
SKUPPER, PER_CLUSTER = "dynamicscorer-skupper.yaml", "dynamicscorer-per-cluster.yaml"
WORK_FILES = sorted(SCORERS.glob("*/manifests/manifestwork.yaml"))
needs_envsubst = pytest.mark.skipif(not shutil.which("envsubst"), reason="needs envsubst")


def substituted(file: Path, *only: str, **values: str) -> list[dict[str, Any]]:
    """Run the manifest through the real envsubst, as the READMEs do."""
    done = run("envsubst", *only, stdin=file.read_text(), **values)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def registered(file: Path) -> list[dict[str, Any]]:
    variables = re.findall(r"envsubst '(\$\w+)'", file.read_text())
    return substituted(
        file, *(variables or ["$NONE"]), NODE_IP="10.0.0.1", EXTERNAL_SCORER_IP="[::]"
    )


def test_every_scorer_can_be_deployed_and_registered_in_each_situation() -> None:
    folders = {"sample", "static", "prediction", "llm_forecast", "latency", "ai_workload"}
    for files in (
        SCORER_FILES,
        WORK_FILES,
        SCORERS.glob(f"*/manifests/{SKUPPER}"),
        SCORERS.glob(f"*/manifests/{PER_CLUSTER}"),
    ):
        assert {file.parts[-3] for file in files} == folders


def service_of(folder: Path) -> dict[str, Any]:
    (work,) = substituted(folder / "manifestwork.yaml", "$NONE")
    service: dict[str, Any] = work["spec"]["workload"]["manifests"][1]
    return service


def addresses(documents: list[dict[str, Any]]) -> set[str]:
    return {urlsplit(document["spec"]["configURL"]).netloc for document in documents}


@needs_envsubst
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_scorer_is_registered_where_it_listens(folder: Path) -> None:
    service = service_of(folder)
    node_port = service["spec"]["ports"][0].get("nodePort")
    # The external scorer listens on its host, not on a node.
    outside = {f"10.0.0.1:{node_port}"} if node_port else {"[::]:8000"}
    inside = {f"{service['metadata']['name']}.dynamic-scoring.svc:8000"}
    assert addresses(registered(folder / "dynamicscorer.yaml")) == outside
    assert addresses(registered(folder / SKUPPER)) == inside
    assert addresses(registered(folder / PER_CLUSTER)) == inside


@needs_envsubst
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_in_each_situation_a_scorer_scores_alike(folder: Path) -> None:
    situations = (
        registered(folder / name) for name in ("dynamicscorer.yaml", SKUPPER, PER_CLUSTER)
    )
    app = APPS[SHIPPED.get(folder.parent.name, folder.parent.name)](NO_MODEL)
    for shared, linked, own in zip(*situations, strict=True):
        assert own["spec"]["configSyncMode"] == "None"
        assert own["metadata"] == linked["metadata"] == shared["metadata"]
        alike = [scored(document, app) for document in (shared, linked, own)]
        assert alike[0] == alike[1] == alike[2]


def scored(document: dict[str, Any], app: FastAPI) -> dict[str, Any]:
    """Return what agents are told of a scorer, without the address, which configURL gives."""
    spec = DynamicScorerSpec.model_validate(document["spec"])
    path = urlsplit(spec.config_url).path
    server = spec.config_url.removesuffix(path)
    config = TestClient(app).get(path).text if spec.config_sync_mode == "Full" else ""
    read = ScorerConfig.model_validate_json(config) if config else None
    found = resolve("any", spec, read)
    assert isinstance(found, Resolved), found
    summary = found.summary.model_dump(mode="json", exclude={"location"})
    assert summary.pop("scoring_endpoint").startswith(f"{server}/")
    return summary


@needs_envsubst
@pytest.mark.parametrize("file", SCORER_FILES, ids=lambda file: file.parts[-3])
def test_the_scorers_are_accepted_by_the_framework(file: Path) -> None:
    for document in registered(file):
        assert document["apiVersion"] == "dynamic-scoring.open-cluster-management.io/v1alpha1"
        assert document["metadata"]["namespace"] == "open-cluster-management"
        spec = DynamicScorerSpec.model_validate(document["spec"])
        assert spec.config_url.startswith("http://")
        assert "${" not in spec.config_url
        assert DimensionFormat.parse(str(spec.score_dimension_format))


@needs_envsubst
def test_names_and_addresses_fit_the_programs() -> None:
    documents = {
        document["metadata"]["name"]: document
        for file in SCORER_FILES
        for document in registered(file)
    }
    assert set(documents) == {
        "sample-scorer",
        "simple-prediction-scorer",
        "llm-forecast-scorer",
        "latency-scorer",
        "ai-workload-perf-scorer",
        "ai-workload-power-scorer",
        "ai-workload-efficiency-scorer",
        "gpu-idle-scorer",
        "example-performance-scorer",
        "example-powerconsumption-scorer",
        "example-cost-scorer",
        "example-carbon-scorer",
    }
    settings = AiWorkloadSettings()
    for config in (
        sample_config(),
        prediction_config(),
        latency_config(),
        performance_config(settings),
        power_config(settings),
        efficiency_config(settings),
        idle_config(settings),
    ):
        assert documents[config.name]["spec"]["description"] == config.description
    llm = documents["llm-forecast-scorer"]["spec"]
    assert llm["scoring"]["auth"]["tokenSecretRef"] == {"name": "api-auth-secret", "key": "token"}
    assert llm["location"] == "External"


@needs_envsubst
@pytest.mark.parametrize("folder", ["sample", "prediction", "llm_forecast"])
def test_half_a_core_is_not_published_as_zero(folder: str) -> None:
    """The wire contract fixes these configs, so the DynamicScorer says how to publish."""
    (document,) = registered(SCORERS / folder / "manifests/dynamicscorer.yaml")
    spec = DynamicScorerSpec.model_validate(document["spec"])
    assert spec.unit == "cores"
    assert spec.scoring
    assert spec.scoring.normalize
    assert spec.scoring.normalize.of(0.5) == 50


@needs_envsubst
@pytest.mark.parametrize("file", WORK_FILES, ids=lambda file: file.parts[-3])
def test_a_manifest_work_deploys_a_restricted_pod_behind_a_service(file: Path) -> None:
    (work,) = substituted(file, CLUSTER_NAME="worker01")
    assert (work["kind"], work["metadata"]["namespace"]) == ("ManifestWork", "worker01")
    deployment, service = work["spec"]["workload"]["manifests"]
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["port"] == container["ports"][0]["containerPort"] == 8000
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["spec"]["automountServiceAccountToken"] is False
    node_port = service["spec"]["ports"][0].get("nodePort")
    assert (service["spec"].get("type") == "NodePort") == (node_port is not None)


@needs_envsubst
@pytest.mark.parametrize("file", WORK_FILES, ids=lambda file: file.parts[-3])
def test_without_the_marks_a_manifest_work_mounts_a_token(file: Path, tmp_path: Path) -> None:
    marked = tmp_path / file.name
    marked.write_text(run("sed", "s/# TOKEN: //", str(file)).stdout)
    (work,) = substituted(marked, CLUSTER_NAME="worker01")
    pod = work["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ((volume,), (mount,)) = pod["volumes"], container["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert mount["readOnly"] is True
    assert {"name": "TOKEN_FILE", "value": f"{mount['mountPath']}/token"} in container["env"]
    sent = (
        registered(file.with_name("dynamicscorer.yaml"))[0]["spec"].get("scoring", {}).get("auth")
    )
    named = sent["tokenSecretRef"]["name"] if sent else f"{work['metadata']['name']}-token"
    assert volume["secret"] == {"secretName": named}
    plain = substituted(file, CLUSTER_NAME="worker01")[0]["spec"]["workload"]["manifests"][0]
    assert "volumes" not in plain["spec"]["template"]["spec"]


@needs_envsubst
def test_samples_share_a_node() -> None:
    ports = {
        folder.parent.name: service_of(folder)["spec"]["ports"][0].get("nodePort")
        for folder in FOLDERS
    }
    assert ports["sample"] == 30007
    assert sorted(filter(None, ports.values())) == [*range(30007, 30012)]


@pytest.mark.parametrize(
    "folder", sorted(file.parent.name for file in SCORERS.glob("*/Dockerfile"))
)
def test_an_image_runs_as_a_numeric_user(folder: str) -> None:
    """Without a number, the kubelet cannot tell that runAsNonRoot holds."""
    text = (SCORERS / folder / "Dockerfile").read_text()
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.MULTILINE)


def test_the_requirements_are_what_a_scorer_imports_and_pinned_as_the_lock_file_is() -> None:
    """`python -m tests.sample_scorers.requirements` writes them."""
    for path, text in expected().items():
        assert path.read_text() == text, path


def test_each_file_that_is_copied_names_its_licence() -> None:
    files = [path for kind in ("py", "sh", "yaml") for path in SCORERS.rglob(f"*.{kind}")]
    for path in (*files, *SCORERS.glob("*/Dockerfile")):
        first, second, *_ = (*path.read_text().splitlines(), "", "")
        assert "# SPDX-License-Identifier: Apache-2.0" in (first, second), path
