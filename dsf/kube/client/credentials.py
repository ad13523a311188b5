"""Credentials in memory: read from files and plugins, and reloaded when a file changes."""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from dsf.kube.client import exec_plugin
from dsf.kube.client.client_config import (
    SERVICE_ACCOUNT,
    BadKubeconfig,
    ClientConfig,
    Content,
    in_cluster,
)
from dsf.kube.client.exec_plugin import ExecCredential
from dsf.kube.client.kubeconfig import parse

Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials that a connection needs, in memory."""

    server: str
    verify: bool
    authority: bytes | None
    server_name: str | None
    proxy: str | None = field(repr=False)
    certificate: bytes | None
    key: bytes | None = field(repr=False)
    authorization: str | None = field(repr=False)
    expires: datetime | None = None


class CredentialSource:
    """Where credentials come from; loads them again after a file has changed."""

    def __init__(self, read: Callable[[], ClientConfig], files: Sequence[Path] = ()) -> None:
        self._read = read
        self._own_files = tuple(files)
        self._files = self._own_files
        self._loaded: tuple[Stamp, ...] = ()

    async def load(self) -> Credentials:
        """Read all files and run the plugin again. Raises BadKubeconfig."""
        own = _stamps(self._own_files)
        access = self._read()
        self._files = self._own_files + access.files
        # Taken before the files are read, so that a write during the read counts as a change.
        self._loaded = own + _stamps(access.files)
        plugin = access.exec_plugin
        return _resolved(access, await exec_plugin.run(plugin) if plugin else None)

    def changed(self) -> bool:
        """Return whether a file has changed since it was loaded."""
        return _stamps(self._files) != self._loaded


def find_source(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> CredentialSource:
    """Return the source that kubectl would use, or else a pod's service account.

    It takes the first of: an explicit file, $KUBECONFIG, ~/.kube/config, the service account.
    Raises BadKubeconfig if none exists.
    """
    files = [kubeconfig] if kubeconfig else _default_files(environ)
    if files:
        return CredentialSource(lambda: parse(_texts(files), context), files)
    pod = in_cluster(environ, service_account)
    if pod is None:
        raise BadKubeconfig(
            "no cluster to talk to: there is no ~/.kube/config, KUBECONFIG is not set, and this is "
            "not a pod; name a file with --kubeconfig"
        )
    return CredentialSource(lambda: pod)


def _default_files(environ: Mapping[str, str]) -> list[Path]:
    listed = [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if listed:
        existing = [file for file in listed if _stamp(file)]
        return existing or listed
    default = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    return [default] if _stamp(default) else []


def _texts(files: Sequence[Path]) -> list[tuple[Path, str]]:
    return [(file, _contents(file, "kubeconfig").decode(errors="replace")) for file in files]


def _resolved(access: ClientConfig, printed: ExecCredential | None) -> Credentials:
    authorization = _authorization(access)
    if printed and printed.token:
        authorization = f"Bearer {_token(printed.token, 'the exec plugin')}"
    return Credentials(
        server=access.server,
        verify=access.verify,
        authority=_bytes(access.authority, "certificate-authority"),
        server_name=access.server_name,
        proxy=access.proxy,
        certificate=(printed and printed.certificate)
        or _bytes(access.certificate, "client-certificate"),
        key=(printed and printed.key) or _bytes(access.key, "client-key"),
        authorization=authorization,
        expires=printed.expires if printed else None,
    )


def _authorization(access: ClientConfig) -> str | None:
    if access.token is not None:
        where = str(access.token) if isinstance(access.token, Path) else "the kubeconfig"
        token = _bytes(access.token, "token") or b""
        return f"Bearer {_token(token.decode(errors='replace'), where)}"
    if access.basic is not None:
        return f"Basic {base64.b64encode(':'.join(access.basic).encode()).decode()}"
    return None


def _token(text: str, where: str) -> str:
    token = text.strip()
    if not token:
        raise BadKubeconfig(f"the token in {where} is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadKubeconfig(f"the token in {where} has characters that no token can have")
    return token


def _bytes(content: Content | None, what: str) -> bytes | None:
    return _contents(content, what) if isinstance(content, Path) else content


def _contents(file: Path, what: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadKubeconfig(f"{what} {file}: {error.strerror}") from None


def _stamps(files: Sequence[Path]) -> tuple[Stamp, ...]:
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ino, status.st_size)
