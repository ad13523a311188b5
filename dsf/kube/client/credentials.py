"""Credentials in memory: read from files and plugins, and reloaded when a file changes.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import asyncio
import base64
import json
import os
import select
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from dsf.kube.client.kubeconfig import (
    SERVICE_ACCOUNT,
    BadKubeconfig,
    ClientConfig,
    Content,
    ExecPlugin,
    in_cluster,
    parse,
)
from dsf.kube.redaction import redact

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Of a kubeconfig, a certificate or a token; kubeconfigs with certificates of 1,000 hubs have 6."""

PIPE_SECONDS = 10.0
"""Pause of the writer of a pipe; a command that gets a token from a server takes seconds."""

Stamp = tuple[int, int, int] | None
LONGEST_SECONDS = 60.0
"""Time limit of a plugin: enough for a slow token request."""
LONGEST_MESSAGE = 200
"""Characters of the output of a failed plugin that a message quotes."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credential that a plugin printed."""

    token: str | None = field(repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    expires: datetime | None = None


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
        own = file_stamps(self._own_files)
        access = self._read()
        self._files = self._own_files + access.files
        # Taken before the files are read, so that a write during the read counts as a change.
        self._loaded = own + file_stamps(access.files)
        plugin = access.exec_plugin
        return _resolved(access, await run_plugin(plugin) if plugin else None)

    def changed(self) -> bool:
        """Return whether a file has changed since it was loaded."""
        return file_stamps(self._files) != self._loaded


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
    """Return the bytes of a file, or of a pipe with a writer, as a shell makes it of `<(command)`.

    kubectl waits for ever where nobody writes, and reads what has no end until memory is full.
    """
    try:
        with FileIO(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))) as opened:
            content = _bounded(opened)
    except TimeoutError:
        raise BadKubeconfig(f"{what} {file}: nothing came for {PIPE_SECONDS:g} s") from None
    except OSError as error:
        raise BadKubeconfig(f"{what} {file}: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise BadKubeconfig(f"{what} {file}: it has more than {MAX_FILE_BYTES >> 20} MiB")
    return content


def _bounded(opened: FileIO) -> bytes:
    """Return what a file has until its end, or one byte more than it may. Raises TimeoutError."""
    content, waits = b"", not stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
    while len(content) <= MAX_FILE_BYTES:
        if waits and not select.select([opened], [], [], PIPE_SECONDS)[0]:
            raise TimeoutError
        part = opened.read(MAX_FILE_BYTES + 1 - len(content))
        if part == b"":
            break
        content += part or b""
    return content


def file_stamps(files: Iterable[Path]) -> tuple[Stamp, ...]:
    """Return of each file what changes when it is replaced; None if it is not there."""
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ino, status.st_size)


async def run_plugin(plugin: ExecPlugin) -> ExecCredential:
    """Run a plugin without a terminal, so it cannot prompt. Raises BadKubeconfig."""
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=_environment(plugin),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise _failed(plugin, error.strerror or "it cannot be run", plugin.install_hint) from None
    output, complaint = await _output(plugin, process)
    if process.returncode:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise _failed(plugin, f"exit code {process.returncode}", redact(last)[:LONGEST_MESSAGE])
    return _printed(plugin, output)


def _printed(plugin: ExecPlugin, output: bytes) -> ExecCredential:
    """Parse the output of a plugin. Raises BadKubeconfig."""
    try:
        status = json.loads(output)["status"]
        credential = _credential(status)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _failed(plugin, "it printed no ExecCredential") from None
    if not credential.token and not (credential.certificate and credential.key):
        raise _failed(plugin, "it printed neither a token nor a certificate with its key")
    return credential


def _credential(status: Mapping[str, Any]) -> ExecCredential:
    token = status.get("token")
    if token is not None and not isinstance(token, str):
        raise TypeError("the token is not text")
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    expires = status.get("expirationTimestamp")
    return ExecCredential(
        token=token,
        certificate=certificate.encode() if certificate else None,
        key=key.encode() if key else None,
        expires=_time(expires) if expires else None,
    )


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


async def _output(plugin: ExecPlugin, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            return await process.communicate()
    except TimeoutError:
        raise _failed(plugin, f"it ran longer than {LONGEST_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    info = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    return {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _failed(plugin: ExecPlugin, problem: str, detail: str = "") -> BadKubeconfig:
    return BadKubeconfig(
        f"kubeconfig: exec plugin {plugin.command}: {problem}"
        + (f": {' '.join(detail.split())}" if detail else "")
    )
