"""OCM on the hub: its CRDs, its RBAC, and its controllers under their own service accounts.

OCM's webhooks do not run, because their server binds a fixed port on every interface. Therefore:

- Their validation is missing, for example of the right to bind a ManagedClusterSet.
- The harness fills in their defaults (``cluster.accept``).
- The add-on kinds are served only as v1alpha1, the version in which they are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .api import Api, Object, parse
from .health import wait_healthy
from .manifests import render
from .ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ..build import Assets
    from .control_plane import ControlPlane

NAMESPACE = "open-cluster-management-hub"
# Where OCM's own chart puts the operator, and add-ons their hub components.
OPERATOR_NAMESPACE = "open-cluster-management"
BOOTSTRAP = f"{OPERATOR_NAMESPACE}/agent-registration-bootstrap"
VALUES = {
    "ClusterManagerName": "cluster-manager",
    "ClusterManagerNamespace": NAMESPACE,
    "AddonAPIServiceCABundle": "Cg==",
}
# Files of the hub folder that belong to webhooks, to registration over gRPC, to the optional
# cluster profiles, or to one add-on (their names are filled in by the add-on manager).
LEFT_OUT = ("webhook-", "grpc-server/", "clusterprofiles/", "addon-manager/token-")
# program -> (arguments, service account)
CONTROLLERS = {
    "registration": (["controller"], "registration-controller-sa"),
    "placement": (["controller"], "placement-controller-sa"),
    "work": (
        ["manager", "--work-driver=kube", "--feature-gates=ManifestWorkReplicaSet=true"],
        "work-controller-sa",
    ),
    "addon": (["manager"], "addon-manager-controller-sa"),
}


def hub_manifests(assets: Assets) -> Iterator[Object]:
    """The objects that OCM's operator installs on a hub, CRDs first."""
    folder = assets.manifests / "ocm" / "manifests" / "cluster-manager" / "hub"
    files = [path for path in folder.rglob("*.yaml") if not left_out(path.relative_to(folder))]
    for path in sorted(files, key=lambda path: (path.parent.name != "crds", str(path))):
        for obj in parse(render(path.read_text(), VALUES)):
            yield without_conversion(without_removals(obj))


def left_out(path: Path) -> bool:
    """Whether a file of the hub folder is not installed."""
    return any(part in path.as_posix() for part in LEFT_OUT)


def without_removals(obj: Object) -> Object:
    """The object without keys that end in ``-``; to the operator they mean "remove it"."""
    annotations = obj["metadata"].get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.endswith("-")}
    obj["metadata"]["annotations"] = kept
    return obj


def without_conversion(obj: Object) -> Object:
    """A CRD as it is, or without the versions that only a conversion webhook could serve."""
    if obj["kind"] == "CustomResourceDefinition" and "conversion" in obj["spec"]:
        del obj["spec"]["conversion"]
        for version in obj["spec"]["versions"]:
            version["served"] = version["storage"]
    return obj


def bootstrap_rbac() -> list[Object]:
    """Rights of a cluster before the hub has accepted it.

    The rights are those of OCM's chart (deploy/cluster-manager/chart, bootstrap_cluster_role).
    """
    namespace, name = BOOTSTRAP.split("/")
    rules = [
        rule("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),
        rule("cluster.open-cluster-management.io", "managedclusters", "create get list watch"),
        rule("cluster.open-cluster-management.io", "managedclustersets/join", "create"),
        rule("", "configmaps", "get"),
    ]
    role = "open-cluster-management:bootstrap"
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def rule(group: str, resource: str, verbs: str) -> Object:
    """One rule of a role."""
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}


def install(api: Api, objects: Iterable[Object]) -> None:
    """Apply objects in order, and wait until the CRDs among them are served."""
    names = []
    for obj in objects:
        api.apply(obj)
        if obj["kind"] == "CustomResourceDefinition":
            names.append(obj["metadata"]["name"])
    for name in names:
        api.wait_condition(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", name, "Established"
        )


def install_hub(hub: ControlPlane) -> None:
    """Install the objects that OCM's operator installs on the hub."""
    hub.namespace(OPERATOR_NAMESPACE)
    hub.namespace(NAMESPACE)
    install(hub.api, [*hub_manifests(hub.assets), *bootstrap_rbac()])


def start_controllers(hub: ControlPlane) -> None:
    """Start OCM's hub controllers, each with the rights of its own service account."""
    health = dict(start_controller(hub, program) for program in CONTROLLERS)
    for name, url in health.items():
        wait_healthy(hub.processes, name, url)


def start_controller(hub: ControlPlane, program: str) -> tuple[str, str]:
    """Start one of OCM's hub controllers; returns its process and the URL of its health."""
    arguments, account = CONTROLLERS[program]
    name = f"{hub.name}-{program}"
    kubeconfig = hub.kubeconfig(service_account=f"{NAMESPACE}/{account}")
    return name, start_component(hub, name, program, arguments, kubeconfig, NAMESPACE)


def start_component(
    plane: ControlPlane,
    name: str,
    program: str,
    arguments: list[str],
    kubeconfig: Path,
    namespace: str,
) -> str:
    """Start one of OCM's programs as its Deployment does, but on loopback.

    Returns the URL of its health endpoint.
    """
    address = f"{LOOPBACK}:{plane.ports.free()}"
    plane.processes.start(
        name,
        [
            plane.assets.program(program),
            *arguments,
            f"--kubeconfig={kubeconfig}",
            f"--namespace={namespace}",
            f"--listen={address}",
            "--disable-leader-election",
        ],
        env={"POD_NAME": name, "POD_NAMESPACE": namespace},
    )
    return f"https://{address}/healthz"
