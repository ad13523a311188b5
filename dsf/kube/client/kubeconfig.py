"""The configuration of a client, from kubeconfig files, merged as kubectl does, or from a pod.

The text of the files is passed in. Messages quote names, never other content of a file.
Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

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


@dataclass(frozen=True, slots=True)
class _Entry:
    """A named cluster, user or context, and the file that it comes from."""

    file: Path
    label: str
    fields: Mapping[str, Any]

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise self.bad(f"{key} must be text")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.fields.get(key) or []
        if not isinstance(value, list):
            raise self.bad(f"{key} must be a list")
        return value

    def content(self, key: str) -> Content | None:
        """Return the decoded `<key>-data`, or else the path in `key`."""
        data = self.text(f"{key}-data")
        if data is not None:
            return self._decoded(f"{key}-data", data)
        path = self.text(key)
        return self.file.parent / path if path else None

    def bad(self, problem: str) -> BadKubeconfig:
        return BadKubeconfig(f"kubeconfig {self.file}: {self.label}: {problem}")

    def _decoded(self, key: str, data: str) -> bytes:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise self.bad(f"{key} is not base64") from None


def parse(files: Sequence[tuple[Path, str]], context: str | None = None) -> ClientConfig:
    """Return the client configuration of a context, by default the current one.

    Of two entries with the same name the first wins. Raises BadKubeconfig.
    """
    documents = [(file, _document(file, text)) for file, text in files]
    chosen = _find(documents, "context", context or _current_context(documents))
    cluster = _find(documents, "cluster", chosen.text("cluster") or "")
    user_name = chosen.text("user")
    user = _find(documents, "user", user_name) if user_name else None
    return _access(cluster, user or _Entry(cluster.file, "no user", {}))


def _access(cluster: _Entry, user: _Entry) -> ClientConfig:
    if "auth-provider" in user.fields:
        raise user.bad("auth-provider is not supported; use an exec plugin such as kubelogin")
    return ClientConfig(
        server=_server(cluster),
        verify=cluster.fields.get("insecure-skip-tls-verify") is not True,
        authority=cluster.content("certificate-authority"),
        server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
        certificate=user.content("client-certificate"),
        key=user.content("client-key"),
        token=_token(user),
        basic=_basic(user),
        exec_plugin=_exec_plugin(user),
    )


def _server(cluster: _Entry) -> str:
    server = cluster.text("server")
    if not server:
        raise cluster.bad("it names no server")
    try:
        parts = urlsplit(server)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None:
        raise cluster.bad("server must be a URL such as https://host:6443")
    return server.rstrip("/")


def _token(user: _Entry) -> Content | None:
    token = user.text("token")
    if token is not None:
        return token.encode()
    path = user.text("tokenFile")
    return user.file.parent / path if path else None


def _basic(user: _Entry) -> tuple[str, str] | None:
    name, password = user.text("username"), user.text("password")
    return (name, password) if name and password else None


def _exec_plugin(user: _Entry) -> ExecPlugin | None:
    fields = user.fields.get("exec")
    if fields is None:
        return None
    if not isinstance(fields, Mapping) or not isinstance(fields.get("command"), str):
        raise user.bad("exec names no command")
    plugin = _Entry(user.file, f"{user.label}: exec", fields)
    if plugin.text("interactiveMode") == "Always":
        raise plugin.bad("interactiveMode Always can't be served by a background process")
    command: str = fields["command"]
    return ExecPlugin(
        command=str(user.file.parent / command) if "/" in command else command,
        args=tuple(str(arg) for arg in plugin.items("args")),
        env=tuple(_environment(plugin)),
        api_version=plugin.text("apiVersion") or EXEC_API_VERSION,
        install_hint=plugin.text("installHint") or "",
    )


def _environment(plugin: _Entry) -> Iterable[tuple[str, str]]:
    for item in plugin.items("env"):
        if not isinstance(item, Mapping) or "name" not in item:
            raise plugin.bad("env must be a list of name and value")
        yield str(item["name"]), str(item.get("value") or "")


Documents = Sequence[tuple[Path, Mapping[str, Any]]]


def _document(file: Path, text: str) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise BadKubeconfig(f"kubeconfig {file}{where}: it is not YAML") from None
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        found = type(document).__name__
        raise BadKubeconfig(f"kubeconfig {file}: it is not a kubeconfig but a {found}")
    return document


def _current_context(documents: Documents) -> str:
    for _, document in documents:
        if document.get("current-context"):
            return str(document["current-context"])
    raise BadKubeconfig(
        f"kubeconfig {_paths(documents)}: no current-context is set; "
        f"choose one with --context: {_names(documents, 'context')}"
    )


def _find(documents: Documents, section: str, name: str) -> _Entry:
    for file, item in _items(documents, section):
        if item.get("name") == name:
            fields = item.get(section)
            entry = _Entry(file, f'{section} "{name}"', fields or {})
            if not isinstance(entry.fields, Mapping):
                raise entry.bad(f"{section} must be a mapping")
            return entry
    raise BadKubeconfig(
        f'kubeconfig {_paths(documents)}: no {section} is named "{name}"; '
        f"the {section}s are: {_names(documents, section)}"
    )


def _items(documents: Documents, section: str) -> Iterable[tuple[Path, Mapping[str, Any]]]:
    for file, document in documents:
        items = document.get(f"{section}s") or []
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise BadKubeconfig(f"kubeconfig {file}: {section}s must be a list of named entries")
        yield from ((file, item) for item in items)


def _names(documents: Documents, section: str) -> str:
    return ", ".join(str(item.get("name")) for _, item in _items(documents, section)) or "none"


def _paths(documents: Documents) -> str:
    return ", ".join(str(file) for file, _ in documents)
