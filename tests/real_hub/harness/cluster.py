"""A managed cluster: a control plane of its own, joined to the hub by OCM's own agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.eventually import until

from . import ocm
from .api import Object, parse
from .control_plane import ControlPlane
from .kubeconfig import write_kubeconfig
from .manifests import render

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AGENT_NAMESPACE = "open-cluster-management-agent"
ADDON_NAMESPACE = "open-cluster-management-agent-addon"
HUB_KUBECONFIG_SECRET = "hub-kubeconfig-secret"
REGISTRATION = "klusterlet-registration-sa"
WORK = "klusterlet-work-sa"
VALUES = {
    "KlusterletName": "klusterlet",
    "KlusterletNamespace": AGENT_NAMESPACE,
    "AgentNamespace": AGENT_NAMESPACE,
    "RegistrationServiceAccount": REGISTRATION,
    "WorkServiceAccount": WORK,
}
# Rights of the work agent on the cluster: its own, and those of every ClusterRole with the label.
# The operator makes this role in code (klusterlet_managed_reconcile.go, createAggregationRule).
AGGREGATE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "open-cluster-management:klusterlet-work:aggregate"},
    "aggregationRule": {
        "clusterRoleSelectors": [
            {"matchLabels": {"open-cluster-management.io/aggregate-to-work": "true"}}
        ]
    },
}
CLUSTER_GROUP = "cluster.open-cluster-management.io/v1"
CSR_GROUP = "certificates.k8s.io/v1"


class ManagedCluster(ControlPlane):
    """A Kubernetes cluster that a hub manages; its name is its name on the hub too."""

    hub: ControlPlane
    bootstrap: Path

    @property
    def hub_kubeconfig(self) -> Path:
        """The kubeconfig that registration obtained: the agents' identity on the hub."""
        return self.directory / "hub-kubeconfig" / "kubeconfig"

    def join(self, hub: ControlPlane) -> None:
        """Install OCM's agents and ask the hub to accept this cluster; returns at once."""
        self.hub = hub
        for namespace in (AGENT_NAMESPACE, ADDON_NAMESPACE):
            self.namespace(namespace)
        ocm.install(self.api, [*klusterlet_manifests(self), AGGREGATE])
        self.start_controllers()
        self.bootstrap = write_kubeconfig(
            self.directory / "kubeconfig" / "bootstrap.yaml",
            server=hub.server,
            ca=hub.authority.own.certificate,
            token=hub.token(ocm.BOOTSTRAP),
        )
        self._start_registration()

    def _start_registration(self) -> None:
        ocm.start_component(
            self,
            f"{self.name}-registration-agent",
            "registration",
            [
                "agent",
                f"--spoke-cluster-name={self.name}",
                f"--agent-id={self.name}-agent",
                f"--bootstrap-kubeconfig={self.bootstrap}",
                f"--hub-kubeconfig-dir={self.hub_kubeconfig.parent}",
                f"--hub-kubeconfig-secret={HUB_KUBECONFIG_SECRET}",
                f"--spoke-external-server-urls={self.server}",
            ],
            self.kubeconfig(service_account=f"{AGENT_NAMESPACE}/{REGISTRATION}"),
            AGENT_NAMESPACE,
        )

    def wait_joined(self) -> None:
        """Accept the cluster as a hub's administrator would, and start its work agent."""
        accept(self.hub, self.name)
        until(
            f"{self.name} to obtain its hub kubeconfig",
            self.hub_kubeconfig.exists,
            check=lambda: self.processes.check(f"{self.name}-registration-agent"),
        )
        ocm.start_component(
            self,
            f"{self.name}-work-agent",
            "work",
            [
                "agent",
                f"--spoke-cluster-name={self.name}",
                f"--agent-id={self.name}-agent",
                "--workload-source-driver=kube",
                f"--workload-source-config={self.hub_kubeconfig}",
            ],
            self.kubeconfig(service_account=f"{AGENT_NAMESPACE}/{WORK}"),
            AGENT_NAMESPACE,
        )

    def wait_available(self) -> Object:
        """Wait until the hub sees this cluster as available, and return its ManagedCluster."""
        return self.hub.api.wait_condition(
            CLUSTER_GROUP, "ManagedCluster", self.name, "ManagedClusterConditionAvailable"
        )


def klusterlet_manifests(cluster: ControlPlane) -> Iterator[Object]:
    """The objects that OCM's operator installs on a managed cluster, CRDs first."""
    folder = cluster.assets.manifests / "ocm" / "manifests" / "klusterlet"
    files = [
        path
        for path in [*(folder / "managed").iterdir(), *(folder / "management").iterdir()]
        if not path.name.endswith("deployment.yaml")
    ]
    for path in sorted(files, key=lambda path: (not path.name.endswith("crd.yaml"), str(path))):
        yield from parse(render(path.read_text(), VALUES))


def accept(hub: ControlPlane, name: str) -> None:
    """Accept a cluster: approve its signing request and set ``hubAcceptsClient``.

    The cluster becomes a member of the default set, as OCM's mutating webhook would arrange.
    """
    labels = f"open-cluster-management.io/cluster-name={name}"
    until(f"{name} to register", lambda: hub.api.find(CLUSTER_GROUP, "ManagedCluster", name))
    requests = until(
        f"{name} to ask for a certificate",
        lambda: hub.api.list(CSR_GROUP, "CertificateSigningRequest", labels=labels),
    )
    for request in requests:
        approve(hub, request)
    member = {"labels": {"cluster.open-cluster-management.io/clusterset": "default"}}
    accepted = {"metadata": member, "spec": {"hubAcceptsClient": True}}
    hub.api.patch(CLUSTER_GROUP, "ManagedCluster", name, accepted)


def approve(hub: ControlPlane, request: Object) -> None:
    """Approve a certificate signing request."""
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "AcceptedByTest",
        "message": "accepted by the administrator of the hub",
    }
    name = request["metadata"]["name"]
    path = hub.api.path(CSR_GROUP, "CertificateSigningRequest", "", name, "approval")
    hub.api.request("PUT", path, {**request, "status": {"conditions": [condition]}})
