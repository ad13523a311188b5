"""etcd, and the control planes that share it: kube-apiserver and kube-controller-manager."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import yaml

from tests.eventually import until

from .api import Api, Object, parse
from .certificates import Authority, write_secret
from .health import wait_healthy
from .kubeconfig import write_kubeconfig
from .ports import LOOPBACK, Ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..build import Assets
    from .processes import Processes

ADMINISTRATORS = "system:masters"
SERVICE_ACCOUNT_HOURS = 24
# What a hub and a managed cluster need of Kubernetes itself. There is no scheduler and no kubelet:
# Pods stay pending, and a test starts a component as a process.
CONTROLLERS = (
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-signing-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)
NO_ISSUER = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "jwt": [],
}
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def start_etcd(
    processes: Processes, assets: Assets, ports: Ports, directory: Path, client: str = ""
) -> str:
    """Start etcd and return its client address; a killed etcd loses its data.

    After a stop, it continues with its data, at the address `client`.
    """
    client = client or f"http://{LOOPBACK}:{ports.free()}"
    peer = f"http://{LOOPBACK}:{ports.free()}"
    processes.start(
        "etcd",
        [
            assets.program("etcd"),
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
    )
    wait_healthy(processes, "etcd", f"{client}/health")
    return client


class ControlPlane:
    """One Kubernetes API server with RBAC on, and its controllers."""

    apiserver_options: tuple[str, ...] = ()
    controllers: tuple[str, ...] = CONTROLLERS
    controller_options: tuple[str, ...] = ()

    def __init__(
        self, name: str, processes: Processes, assets: Assets, ports: Ports, directory: Path
    ) -> None:
        self.name = name
        self.ports = ports
        self.processes = processes
        self.assets = assets
        self.directory = directory / name
        self.authority = Authority(self.directory / "pki")
        self.signing = self.authority.client("service-account-signer")
        self.authentication = self.directory / "authentication.yaml"
        """Issuers whose tokens the API server accepts; it reads the file again when it changes."""
        self.server = f"https://{LOOPBACK}:{ports.free()}"
        self.admin_kubeconfig = self.kubeconfig(user="administrator", group=ADMINISTRATORS)
        self.api = Api.from_kubeconfig(self.admin_kubeconfig)

    def start(self, etcd: str) -> None:
        """Start the API server and return at once."""
        serving = self.authority.server("apiserver")
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(AUDIT_POLICY))
        self.authentication.write_text(yaml.safe_dump(NO_ISSUER))
        self.processes.start(
            f"{self.name}-kube-apiserver",
            [
                self.assets.program("kube-apiserver"),
                f"--etcd-servers={etcd}",
                f"--etcd-prefix=/{self.name}",
                f"--bind-address={LOOPBACK}",
                f"--advertise-address={LOOPBACK}",
                f"--secure-port={self.server.rsplit(':', 1)[1]}",
                f"--cert-dir={self.directory / 'pki'}",
                f"--tls-cert-file={serving.certificate}",
                f"--tls-private-key-file={serving.key}",
                f"--client-ca-file={self.authority.own.certificate}",
                f"--requestheader-client-ca-file={self.authority.front_proxy}",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                f"--authentication-config={self.authentication}",
                "--authorization-mode=RBAC",
                f"--service-account-issuer={self.server}",
                f"--service-account-key-file={self.signing.key}",
                f"--service-account-signing-key-file={self.signing.key}",
                "--service-cluster-ip-range=10.255.0.0/24",
                # A loopback address is no valid endpoint of the Service "kubernetes".
                "--endpoint-reconciler-type=none",
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit_log}",
                *self.apiserver_options,
            ],
        )

    def wait_ready(self) -> None:
        """Wait until the API server is ready."""
        apiserver = f"{self.name}-kube-apiserver"
        until(
            f"the API server of {self.name} to be ready",
            self.api.healthy,
            check=lambda: self.processes.check(apiserver),
        )

    def start_controllers(self) -> None:
        """Start Kubernetes' own controllers.

        Install the CRDs first: garbage collection looks for new kinds only every 30 s.
        """
        ca = self.authority.own
        self.processes.start(
            f"{self.name}-kube-controller-manager",
            [
                self.assets.program("kube-controller-manager"),
                f"--kubeconfig={self.admin_kubeconfig}",
                f"--controllers={','.join(self.controllers)}",
                f"--cluster-signing-cert-file={ca.certificate}",
                f"--cluster-signing-key-file={ca.key}",
                f"--root-ca-file={ca.certificate}",
                f"--service-account-private-key-file={self.signing.key}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=100",
                "--kube-api-burst=200",
                *self.controller_options,
            ],
        )

    def kubeconfig(
        self,
        *,
        user: str = "",
        group: str | None = None,
        service_account: str = "",
        namespace: str = "default",
    ) -> Path:
        """Write a kubeconfig for a user (client certificate) or for ``namespace/name`` of a
        service account (token), which has to exist; raises ApiError (404) otherwise.
        """
        if service_account:
            return self._service_account_kubeconfig(service_account)
        path = self.directory / "kubeconfig" / f"{user.replace(':', '-').replace('/', '-')}.yaml"
        return write_kubeconfig(
            path,
            server=self.server,
            ca=self.authority.own.certificate,
            client=self.authority.client(user, group),
            namespace=namespace,
        )

    def _service_account_kubeconfig(self, service_account: str) -> Path:
        namespace, name = service_account.split("/")
        return write_kubeconfig(
            self.directory / "kubeconfig" / f"{namespace}-{name}.yaml",
            server=self.server,
            ca=self.authority.own.certificate,
            token=self.token(service_account),
            namespace=namespace,
        )

    def token(
        self,
        service_account: str,
        hours: int = SERVICE_ACCOUNT_HOURS,
        audiences: Sequence[str] = (),
    ) -> str:
        """A token of a service account, given as ``namespace/name``; by default for this server."""
        namespace, name = service_account.split("/")
        path = self.api.path("v1", "ServiceAccount", namespace, name, "token")
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": hours * 3600, "audiences": list(audiences)},
        }
        return str(self.api.request("POST", path, request)["status"]["token"])

    def mount_secret(self, namespace: str, name: str) -> Path:
        """Write a Secret's data as files, as a kubelet mounts it, and return the folder."""
        folder = self.directory / "secrets" / namespace / name
        folder.mkdir(parents=True, exist_ok=True)
        for key, data in self.api.get("v1", "Secret", name, namespace)["data"].items():
            write_secret(folder / key, base64.b64decode(data))
        return folder

    def apply(self, manifest: Object | str) -> list[Object]:
        """Server-side apply an object, or every object of a YAML text, as administrator."""
        objects = parse(manifest) if isinstance(manifest, str) else [manifest]
        return [self.api.apply(obj) for obj in objects]

    def namespace(self, name: str) -> str:
        """Create a namespace, if it is not there, and return its name."""
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    @property
    def audit_log(self) -> Path:
        """File with one audit event (JSON) per line."""
        return self.processes.logs / f"{self.name}-audit.log"

    def audited(self, user: str) -> Iterator[Object]:
        """The requests of a user to this API server, oldest first (audit.k8s.io/v1 Event)."""
        for line in self.audit_log.read_text().splitlines():
            event: Object = json.loads(line)
            # A request that could not be authenticated has a user without a name.
            if event["user"].get("username") == user:
                yield event
