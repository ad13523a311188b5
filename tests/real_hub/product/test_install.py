"""The chart's add-on on a real hub: OCM deploys the agent and gives it its identity and rights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.eventually import until

from ..harness import ocm
from ..harness.api import MERGE, Api, ApiError, condition_of
from ..harness.health import wait_healthy
from ..harness.helm import CHARTS, HelmFailed, helm
from .conftest import AGENT_NAMESPACE, INVENTORY, SCORE, wait_deployed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

ADDON = (
    "addon.open-cluster-management.io/v1alpha1",
    "ManagedClusterAddOn",
    "dynamic-scoring-framework",
)
PARTED = "an agent writes the scores and the inventory of its own managed cluster only"
LEASE = ("coordination.k8s.io/v1", "Lease", "dynamic-scoring-framework")
DRY_RUN = {"dryRun": "All"}
CSR = ("certificates.k8s.io/v1", "CertificateSigningRequest")

pytestmark = pytest.mark.usefixtures("framework")


@pytest.fixture
def agent_of_east(hub: Hub, east: ManagedCluster) -> Iterator[Api]:
    """The hub, as the agent of east may use it."""
    wait_deployed(hub, east)
    folder = east.mount_secret(AGENT_NAMESPACE, "dynamic-scoring-framework-hub-kubeconfig")
    api = Api.from_kubeconfig(folder / "kubeconfig")
    yield api
    api.close()


def test_ocm_deploys_the_agent_on_every_cluster(hub: Hub, clusters: list[ManagedCluster]) -> None:
    for cluster in clusters:
        wait_deployed(hub, cluster)
        deployment = cluster.api.get(
            "apps/v1", "Deployment", "dynamic-scoring-agent", AGENT_NAMESPACE
        )
        pod = deployment["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == "dynamic-scoring-agent-sa"
        [container] = pod["containers"]
        assert container["args"] == [
            "agent",
            f"--cluster-name={cluster.name}",
            "--hub-kubeconfig=/managed/hub-kubeconfig/kubeconfig",
            f"--namespace={AGENT_NAMESPACE}",
            "--metrics-bind-address=:8080",
            "--service-account-token-hosts=*.svc,*.svc.cluster.local",
            "--inventory",
        ]
        addon = hub.api.wait_condition(*ADDON, "ManifestApplied", cluster.name)
        assert addon["status"]["namespace"] == AGENT_NAMESPACE


def test_ocm_approves_the_agents_certificate(hub: Hub, clusters: list[ManagedCluster]) -> None:
    for cluster in clusters:
        wait_deployed(hub, cluster)
        labels = (
            f"open-cluster-management.io/cluster-name={cluster.name},"
            "open-cluster-management.io/addon-name=dynamic-scoring-framework"
        )
        # More than one where the agent's namespace came later than its certificate.
        requests = hub.api.list(*CSR, labels=labels)
        assert any(condition_of(each, "Approved").get("status") == "True" for each in requests)


def test_the_agent_writes_no_other_clusters_scores(hub: Hub, agent_of_east: Api) -> None:
    """OCM binds one role to the agents of all clusters; the admission policy separates them."""
    path = agent_of_east.path(*SCORE, "west")
    score = {"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": {"name": "intruder"}}
    until("the agents to be parted", lambda: refused(agent_of_east, "POST", path, score))
    hub.apply({**score, "metadata": {"name": "victim", "namespace": "west"}})
    assert refused(agent_of_east, "PATCH", f"{path}/victim/status", {"status": {}})
    assert refused(agent_of_east, "DELETE", f"{path}/victim")
    own = agent_of_east.path(*SCORE, "east")
    assert agent_of_east.request("POST", own, score, params=DRY_RUN)
    hub.api.delete(*SCORE, "victim", "west")


def test_the_agent_writes_no_other_clusters_inventory(hub: Hub, agent_of_east: Api) -> None:
    inventory = {"apiVersion": INVENTORY[0], "kind": INVENTORY[1], "metadata": {"name": "victim"}}
    path = agent_of_east.path(*INVENTORY, "west")
    until("the agents to be parted", lambda: refused(agent_of_east, "POST", path, inventory))
    hub.apply({**inventory, "metadata": {"name": "victim", "namespace": "west"}})
    assert refused(agent_of_east, "PATCH", f"{path}/victim/status", {"status": {"nodeCount": 9}})
    own = agent_of_east.path(*INVENTORY, "east")
    assert agent_of_east.request("POST", own, inventory, params=DRY_RUN)
    hub.api.delete(*INVENTORY, "victim", "west")


def refused(api: Api, method: str, path: str, body: Object | None = None) -> bool:
    """Whether the admission policy refuses the write; an accepted one changes nothing."""
    content_type = MERGE if method == "PATCH" else "application/json"
    try:
        api.request(method, path, body, content_type=content_type, params=DRY_RUN)
    except ApiError as error:
        return (error.status, PARTED in error.message) == (403, True)
    return False


def test_the_addon_is_available_once_the_agent_is_ready(hub: Hub, agents: dict[str, Part]) -> None:
    for cluster in agents:
        hub.api.wait_condition(*ADDON, "Available", cluster)


def test_the_addon_is_available_by_the_agents_lease_too(
    hub: Hub, east: ManagedCluster, agents: dict[str, Part]
) -> None:
    """OCM's registration agent reads it unless the add-on says that its health is `Customized`.

    For add-ons from templates OCM's add-on manager says so; it is stopped for a while here.
    """
    lease = until("the Lease", lambda: east.api.find(*LEASE, AGENT_NAMESPACE))
    assert lease["spec"]["leaseDurationSeconds"] == 60
    assert hub.api.get(*ADDON, east.name)["status"]["healthCheck"]["mode"] == "Customized"
    hub.processes.stop(f"{hub.name}-addon")
    try:
        by_lease = {"status": {"healthCheck": {"mode": "Lease"}, "conditions": []}}
        hub.api.patch(*ADDON, by_lease, east.name, subresource="status")
        addon = hub.api.wait_condition(*ADDON, "Available", east.name)
        assert condition_of(addon, "Available")["reason"] == "ManagedClusterAddOnLeaseUpdated"
    finally:
        wait_healthy(hub.processes, *ocm.start_controller(hub, "addon"))
    hub.api.wait_condition(*ADDON, "ManifestApplied", east.name)
    until(
        "the add-on manager's own way",
        lambda: hub.api.get(*ADDON, east.name)["status"]["healthCheck"]["mode"] == "Customized",
    )


@pytest.mark.parametrize(
    ("value", "option"), [("maxSeries", "--max-series"), ("answersInFlight", "--answers-in-flight")]
)
def test_a_limit_is_the_agents_own_or_the_charts(hub: Hub, value: str, option: str) -> None:
    for limit, told in ((0, []), (500, [f"{option}=500"])):
        manifests = rendered(hub, f"--set=spokeSetting.agent.{value}={limit}")
        [deployment] = [obj for obj in manifests if obj["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert [word for word in container["args"] if word.startswith(option)] == told


def test_an_agent_that_is_not_ready_still_gets_what_other_scores_need(hub: Hub) -> None:
    otlp = {"enabled": True, "allowedFrom": [{"namespaceSelector": {}}]}
    manifests = rendered(hub, f"--set-json=spokeSetting.agent.otlp={json.dumps(otlp)}")
    [service] = [obj for obj in manifests if obj["kind"] == "Service"]
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert "otlp" in {port["name"] for port in service["spec"]["ports"]}


def rendered(hub: Hub, setting: str) -> list[Object]:
    """The manifests of the AddOnTemplate, from the chart with one value set."""
    chart = str(CHARTS / "dynamic-scoring-framework")
    text = helm(hub, "template", "rendered", chart, "--kube-version=1.30", setting)
    objects = [obj for obj in yaml.safe_load_all(text) if obj]
    [template] = [obj for obj in objects if obj["kind"] == "AddOnTemplate"]
    return list(template["spec"]["agentSpec"]["workload"]["manifests"])


def test_who_may_reach_the_otlp_port_is_the_charts_to_say(hub: Hub, east: ManagedCluster) -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"team": "observability"}}}]
    policies = {
        enabled: [obj for obj in manifests if obj["kind"] == "NetworkPolicy"]
        for enabled in (True, False)
        for otlp in [{"enabled": enabled, "allowedFrom": peers}]
        for manifests in [rendered(hub, f"--set-json=spokeSetting.agent.otlp={json.dumps(otlp)}")]
    }
    assert policies[False] == []
    [policy] = policies[True]
    assert [rule.get("from") for rule in policy["spec"]["ingress"]] == [None, peers]
    path = east.api.path(policy["apiVersion"], "NetworkPolicy", AGENT_NAMESPACE)
    assert east.api.request("POST", path, policy, params=DRY_RUN)["spec"] == policy["spec"] | {
        "ingress": [
            {**rule, "ports": [{**port, "protocol": "TCP"} for port in rule["ports"]]}
            for rule in policy["spec"]["ingress"]
        ]
    }


@pytest.mark.parametrize("secrets", [[], ["api-auth", "prometheus-token"]])
def test_the_agent_may_read_no_secrets_but_those_named(hub: Hub, secrets: list[str]) -> None:
    """Without names, those of the Role that the controller sends."""
    setting = f"--set-json=spokeSetting.agent.secretNames={json.dumps(secrets)}"
    manifests = rendered(hub, setting)
    [role] = [obj for obj in manifests if obj["kind"] == "Role"]
    rules = [rule for rule in role["rules"] if rule["resources"] == ["secrets"]]
    given = [(rule["resourceNames"], rule["verbs"]) for rule in rules]
    assert given == ([(secrets, ["get", "list", "watch"])] if secrets else [])
    bound = [obj["roleRef"]["name"] for obj in manifests if obj["kind"] == "RoleBinding"]
    sent = [] if secrets else ["dynamic-scoring-agent-secrets"]
    assert bound == ["dynamic-scoring-agent", *sent]
    [deployment] = [obj for obj in manifests if obj["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    watched = [word for word in container["args"] if word.startswith("--watch-secrets")]
    assert watched == ([f"--watch-secrets={','.join(secrets)}"] if secrets else [])


@pytest.mark.parametrize(
    ("chart", "misspelt"),
    [
        ("dynamic-scoring-framework", "spokeSetting.agent.maxserie=5"),
        ("dynamic-scoring-optimizer", "allowWrite=true"),
        ("policy-watcher", "pollInterval=5"),
    ],
)
def test_a_misspelt_value_is_refused_by_its_chart(hub: Hub, chart: str, misspelt: str) -> None:
    given = "clusterName=east" if chart == "policy-watcher" else ""
    words = ("template", "it", str(CHARTS / chart), "--kube-version=1.30.0")
    assert "kind: Deployment" in helm(hub, *words, f"--set={given}")
    with pytest.raises(HelmFailed, match="additional properties"):
        helm(hub, *words, f"--set={given}", f"--set={misspelt}")
