"""The manifests and images that the READMEs deploy."""

import ast
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.scoring.dimension_format import DimensionFormat
from sample_scorers.ai_workload.app import (
    AiWorkloadSettings,
    efficiency_config,
    performance_config,
    power_config,
)
from sample_scorers.latency.app import config as latency_config
from sample_scorers.prediction.app import config as prediction_config
from sample_scorers.sample.app import config as sample_config
from tests.sample_scorers.serving import SCORERS, run

SCORER_FILES = sorted(SCORERS.glob("*/manifests/dynamicscorer.yaml"))
WORK_FILES = sorted(SCORERS.glob("*/manifests/manifestwork.yaml"))
needs_envsubst = pytest.mark.skipif(not shutil.which("envsubst"), reason="needs envsubst")


def substituted(file: Path, *only: str, **values: str) -> list[dict[str, Any]]:
    """Run the manifest through the real envsubst, as the READMEs do."""
    done = run("envsubst", *only, stdin=file.read_text(), **values)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def registered(file: Path) -> list[dict[str, Any]]:
    variables = re.findall(r"envsubst '(\$\w+)'", file.read_text())
    return substituted(file, *(variables or ["$NONE"]), NODE_IP="10.0.0.1", EXTERNAL_SCORER_IP="::")


def test_every_scorer_can_be_registered_and_all_but_the_external_one_deployed() -> None:
    folders = {"sample", "static", "prediction", "llm_forecast", "latency", "ai_workload"}
    assert {file.parts[-3] for file in SCORER_FILES} == folders
    assert {file.parts[-3] for file in WORK_FILES} == folders - {"llm_forecast"}


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
    assert node_port == (30007 if "sample-scorer" in service["metadata"]["name"] else None)
    assert (service["spec"].get("type") == "NodePort") == (node_port is not None)


@pytest.mark.parametrize(
    "folder", sorted(file.parent.name for file in SCORERS.glob("*/Dockerfile"))
)
def test_an_image_runs_as_a_numeric_user(folder: str) -> None:
    """Without a number, the kubelet cannot tell that runAsNonRoot holds."""
    text = (SCORERS / folder / "Dockerfile").read_text()
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.MULTILINE)


FOLDERS = sorted(file.parent for file in SCORERS.glob("*/requirements.txt"))
COMES_WITH = {"starlette": "fastapi", "pydantic_core": "pydantic", "yaml": "pyyaml"}
"""The package that brings a module of another name."""


def imported(folder: Path) -> set[str]:
    """Return the packages whose modules a scorer and the shared modules import."""
    nodes = [
        node
        for file in (*SCORERS.glob("*.py"), *folder.glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
    ]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {
        node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    }
    tops = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    return {COMES_WITH.get(top, top) for top in tops}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_requirements_are_what_a_scorer_imports_and_what_the_tests_use(folder: Path) -> None:
    lines = (folder / "requirements.txt").read_text().splitlines()
    required = {found.name: found for found in map(Requirement, lines)}
    assert required.keys() == imported(folder)
    for name, requirement in required.items():
        assert requirement.specifier.contains(version(name)), name
