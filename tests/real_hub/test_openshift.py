"""What docs/how-to/openshift.md says and a kube-apiserver can decide.

The API server enforces the Pod Security Standard ``restricted``. OpenShift's restricted-v2 wants
that too, and no fixed user or group.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dsf.agent.fetch.credentials import ServiceAccount
from dsf.agent.wire.secret_data import Token
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.hub.assess.config_resolution import Resolved, resolve
from tests.eventually import until
from tests.repository import ROOT

from .build import kubernetes_version
from .harness.api import ApiError, parse
from .harness.helm import CHARTS, helm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .harness.api import Object
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

FILES = ROOT / "docs/examples/openshift"
SAMPLES = sorted((ROOT / "sample_scorers").glob("*/manifests/manifestwork.yaml"))
ALL_CHARTS = sorted(path.parent for path in CHARTS.glob("*/Chart.yaml"))
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
ACCOUNT = ("v1", "ServiceAccount")
WORK = ("work.open-cluster-management.io/v1", "ManifestWork")


@pytest.fixture(scope="module")
def restricted(hub: Hub) -> str:
    """A namespace in which only Pods of the Pod Security Standard ``restricted`` are created."""
    name = "restricted"
    hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    hub.api.patch("v1", "Namespace", name, {"metadata": {"labels": RESTRICTED}})
    until("the default ServiceAccount", lambda: hub.api.find(*ACCOUNT, "default", name))
    return name


def rendered(hub: Hub, chart: Path, *flags: str) -> list[Object]:
    """What a chart installs."""
    version = f"--kube-version={kubernetes_version()}"
    printed = helm(hub, "template", chart.name, str(chart), version, *flags)
    return [obj for obj in yaml.safe_load_all(printed) if obj]


def deployments(value: Any) -> Iterator[Object]:
    """Every Deployment in a document, also those inside of other objects."""
    if isinstance(value, dict):
        if value.get("kind") == "Deployment" and "template" in value.get("spec", {}):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from deployments(item)


def refusal(hub: Hub, namespace: str, spec: Object) -> str:
    """What the API server says against a Pod, or nothing."""
    spec = {key: value for key, value in spec.items() if key != "serviceAccountName"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": spec}
    try:
        hub.api.request("POST", hub.api.path("v1", "Pod", namespace), pod, params={"dryRun": "All"})
    except ApiError as error:
        return error.message
    return ""


def chosen_identities(value: Any) -> set[str]:
    """The fields of a Pod that fix a user or a group."""
    if isinstance(value, list):
        return {found for item in value for found in chosen_identities(item)}
    if not isinstance(value, dict):
        return set()
    own = set(value) & {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"}
    return own | chosen_identities(list(value.values()))


def assert_restricted(hub: Hub, namespace: str, documents: list[Object]) -> None:
    found = list(deployments(documents))
    assert found
    for deployment in found:
        spec = deployment["spec"]["template"]["spec"]
        assert refusal(hub, namespace, spec) == ""
        assert chosen_identities(spec) == set()


@pytest.mark.parametrize("chart", ALL_CHARTS, ids=lambda chart: chart.name)
def test_every_pod_of_a_chart_is_restricted(hub: Hub, restricted: str, chart: Path) -> None:
    assert_restricted(hub, restricted, rendered(hub, chart))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.parts[-3])
def test_every_pod_of_a_sample_is_restricted(hub: Hub, restricted: str, sample: Path) -> None:
    assert_restricted(hub, restricted, parse(sample.read_text()))


def test_a_pod_that_is_not_restricted_would_have_been_noticed(hub: Hub, restricted: str) -> None:
    spec = {"containers": [{"name": "any", "image": "any"}]}
    assert "violates PodSecurity" in refusal(hub, restricted, spec)


@pytest.mark.usefixtures("framework")
@pytest.mark.parametrize("name", ["dynamicscorer", "monitoring-view", "service-ca"])
def test_an_api_server_accepts_the_file(hub: Hub, name: str) -> None:
    [obj] = parse((FILES / f"{name}.yaml").read_text())
    path = hub.api.path(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace", ""))
    hub.api.request("POST", path, obj, params={"dryRun": "All", "fieldValidation": "Strict"})


def test_the_controller_mounts_the_certificate_that_it_is_to_trust(hub: Hub) -> None:
    chart = CHARTS / "dynamic-scoring-framework"
    values = chart / "values/openshift.yaml"
    [controller] = [
        obj for obj in rendered(hub, chart, f"--values={values}") if obj["kind"] == "Deployment"
    ]
    spec = controller["spec"]["template"]["spec"]
    [container] = spec["containers"]
    [service_ca] = parse((FILES / "service-ca.yaml").read_text())
    volumes = {
        mount["mountPath"]: volume["configMap"]["name"]
        for mount in container["volumeMounts"]
        for volume in spec["volumes"]
        if volume["name"] == mount["name"] and "configMap" in volume
    }
    assert volumes == {"/etc/scorer-ca": service_ca["metadata"]["name"]}
    assert any("/etc/scorer-ca/service-ca.crt" in argument for argument in container["args"])


def test_the_optimizer_serves_the_certificate_that_its_service_asks_for(hub: Hub) -> None:
    chart = CHARTS / "dynamic-scoring-optimizer"
    objects = rendered(hub, chart, f"--values={chart / 'values/openshift.yaml'}")
    [service] = [obj for obj in objects if obj["kind"] == "Service"]
    [deployment] = [obj for obj in objects if obj["kind"] == "Deployment"]
    asked = service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert asked in [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]


def test_the_agent_asks_thanos_with_its_own_token(tmp_path: Path) -> None:
    [scorer] = parse((FILES / "dynamicscorer.yaml").read_text())
    outcome = resolve("openshift-cpu", DynamicScorerSpec.model_validate(scorer["spec"]), None)
    assert isinstance(outcome, Resolved)
    summary = outcome.summary
    thanos = "https://thanos-querier.openshift-monitoring.svc:9091/api/v1/query_range"
    assert summary.source_endpoint == thanos
    assert summary.source_endpoint_auth_service_account
    authority = (summary.source_endpoint_ca_name, summary.source_endpoint_ca_key)
    assert authority == ("openshift-service-ca", "service-ca.crt")
    token = tmp_path / "token"
    token.write_text("own")
    sent = asyncio.run(ServiceAccount(path=token).token(thanos))
    assert isinstance(sent, Token)
    assert sent.headers == {"Authorization": "Bearer own"}


def test_a_linked_pull_secret_stays_when_ocm_writes_the_account(
    hub: Hub, east: ManagedCluster
) -> None:
    metadata = {"name": "linked-account", "namespace": "default"}
    account = {"apiVersion": ACCOUNT[0], "kind": ACCOUNT[1], "metadata": metadata}
    place = {"name": "account", "namespace": east.name}
    work = {"apiVersion": WORK[0], "kind": WORK[1], "metadata": place}
    hub.apply({**work, "spec": {"workload": {"manifests": [account]}}})
    until("the account", lambda: east.api.find(*ACCOUNT, *metadata.values()))
    linked = [{"name": "scoring-registry"}]
    east.api.patch(*ACCOUNT, "linked-account", {"imagePullSecrets": linked}, "default")

    labelled = {**account, "metadata": {**metadata, "labels": {"written": "again"}}}
    hub.apply({**work, "spec": {"workload": {"manifests": [labelled]}}})

    def written_again() -> Object | None:
        now = east.api.get(*ACCOUNT, *metadata.values())
        return now if now["metadata"].get("labels") else None

    assert until("OCM to write it", written_again)["imagePullSecrets"] == linked
    hub.api.delete(*WORK, "account", east.name)
