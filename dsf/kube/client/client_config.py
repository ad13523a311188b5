"""The configuration of a client: server, authority and credentials, as values or file names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dsf.kube.errors import KubeError

EXEC_API_VERSION = "client.authentication.k8s.io/v1"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Content = bytes | Path
"""What a kubeconfig holds itself, or the file that holds it."""


class BadKubeconfig(KubeError):
    """No usable API server configuration; the message names the file and says what to do."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A client-go credential plugin: a program that prints an ExecCredential.

    Source: https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
    """

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = EXEC_API_VERSION
    install_hint: str = ""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """One cluster and one user of a kubeconfig, or of a pod's service account."""

    server: str
    verify: bool = True
    authority: Content | None = None
    server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    certificate: Content | None = None
    key: Content | None = field(default=None, repr=False)
    token: Content | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    exec_plugin: ExecPlugin | None = field(default=None, repr=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the configuration refers to."""
        contents = (self.authority, self.certificate, self.key, self.token)
        return tuple(content for content in contents if isinstance(content, Path))


def in_cluster(
    environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT
) -> ClientConfig | None:
    """Return the configuration of a pod's service account, or None outside a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        return None
    authority = f"[{host}]" if ":" in host else host
    return ClientConfig(
        server=f"https://{authority}:{port}",
        authority=directory / "ca.crt",
        token=directory / "token",
    )
