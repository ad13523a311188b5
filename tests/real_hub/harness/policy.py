"""OCM's governance policies: the propagator on the hub, two controllers on a managed cluster.

The propagator's validating webhook does not run, so a Policy whose name is too long is not
refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import ocm
from .api import Object, parse
from .cluster import ADDON_NAMESPACE, ManagedCluster
from .health import wait_healthy
from .kubeconfig import write_kubeconfig
from .ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .control_plane import ControlPlane

PROPAGATOR = "governance-policy-propagator"
FRAMEWORK = "governance-policy-framework-addon"
CONFIGURATION = "config-policy-controller"


def start_on_hub(hub: ControlPlane) -> None:
    """Install the policy API on the hub and start the propagator."""
    ocm.install(hub.api, manifests(hub, PROPAGATOR, ocm.OPERATOR_NAMESPACE))
    start(
        hub,
        PROPAGATOR,
        ["--enable-webhooks=false", "--disable-placementrule=true"],
        hub.kubeconfig(service_account=f"{ocm.OPERATOR_NAMESPACE}/{PROPAGATOR}"),
        {"WATCH_NAMESPACE": ""},
    )


def start_on_cluster(cluster: ManagedCluster) -> None:
    """Install the policy API on a joined cluster and start its two controllers."""
    cluster.namespace(cluster.name)
    ocm.install(cluster.api, crds(cluster, PROPAGATOR))
    for program in (FRAMEWORK, CONFIGURATION):
        ocm.install(cluster.api, manifests(cluster, program, ADDON_NAMESPACE))
    start(
        cluster,
        FRAMEWORK,
        [
            f"--cluster-namespace={cluster.name}",
            f"--hub-cluster-configfile={identity_on_hub(cluster)}",
            "--disable-gatekeeper-sync=true",
        ],
        cluster.kubeconfig(service_account=f"{ADDON_NAMESPACE}/{FRAMEWORK}"),
        {},
    )
    start(
        cluster,
        CONFIGURATION,
        ["controller", f"--cluster-name={cluster.name}"],
        cluster.kubeconfig(service_account=f"{ADDON_NAMESPACE}/{CONFIGURATION}"),
        {"WATCH_NAMESPACE": cluster.name},
    )


def start(
    plane: ControlPlane, program: str, arguments: list[str], kubeconfig: Path, env: dict[str, str]
) -> None:
    """Start one of the controllers, with its health on loopback and no metrics, and wait."""
    name = f"{plane.name}-{program}"
    address = f"{LOOPBACK}:{plane.ports.free()}"
    plane.processes.start(
        name,
        [
            plane.assets.program(program),
            *arguments,
            "--leader-elect=false",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={address}",
        ],
        env={
            "KUBECONFIG": str(kubeconfig),
            "POD_NAME": program,
            "OPERATOR_NAME": program,
            # Outside a Pod there is no file that names its namespace.
            "OSDK_FORCE_RUN_MODE": "local",
            **env,
        },
    )
    wait_healthy(plane.processes, name, f"http://{address}/healthz")


def crds(plane: ControlPlane, program: str) -> Iterator[Object]:
    """The CRDs of a program's module."""
    for path in sorted((plane.assets.manifests / program / "deploy").glob("crds/*.yaml")):
        yield from parse(path.read_text())


def manifests(plane: ControlPlane, program: str, namespace: str) -> Iterator[Object]:
    """CRDs, service account and RBAC of a program, in a namespace; not its Deployment."""
    yield from crds(plane, program)
    operator = plane.assets.manifests / program / "deploy" / "operator.yaml"
    for obj in parse(operator.read_text()):
        if obj["kind"] != "Deployment":
            yield in_namespace(obj, namespace)


def in_namespace(obj: Object, namespace: str) -> Object:
    """The object with its namespace filled in, and those of the subjects it binds."""
    if not obj["kind"].startswith("Cluster"):
        obj["metadata"].setdefault("namespace", namespace)
    for subject in obj.get("subjects", []):
        subject["namespace"] = namespace
    return obj


def identity_on_hub(cluster: ManagedCluster) -> Path:
    """The framework's kubeconfig for the hub: its role, in the namespace of its cluster."""
    hub = cluster.hub
    user = f"policy-framework:{cluster.name}"
    roles = [
        obj
        for obj in manifests(cluster, FRAMEWORK, ADDON_NAMESPACE)
        if obj["kind"] == "ClusterRole"
    ]
    for role in roles:
        hub.api.apply({**role, "kind": "Role", "metadata": named(role, cluster.name)})
        hub.api.apply(
            {
                "apiVersion": role["apiVersion"],
                "kind": "RoleBinding",
                "metadata": named(role, cluster.name),
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": role["metadata"]["name"],
                },
                "subjects": [{"kind": "User", "name": user}],
            }
        )
    return write_kubeconfig(
        cluster.directory / "kubeconfig" / "policy-on-hub.yaml",
        server=hub.server,
        ca=hub.authority.own.certificate,
        client=hub.authority.client(user),
        namespace=cluster.name,
    )


def named(role: Object, namespace: str) -> Object:
    """Metadata with a role's name, in a namespace."""
    return {"name": role["metadata"]["name"], "namespace": namespace}
