"""The data of Secrets: tokens, OAuth clients, the hosts that may get them, certificates.

No message contains data of a Secret.

A list of allowed hosts reads `thanos.monitoring.svc, *.example.com, 10.0.0.7:9090`. `*.` stands for
one or more labels in front; an entry with a port matches that port only; letter case is ignored.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dsf.agent.wire.http_answer import display_url
from dsf.api import names
from dsf.api.crd.scorer_source import CERTIFICATE_KEY, CLIENT_ID, CLIENT_SECRET, PRIVATE_KEY
from dsf.api.untrusted_text import InvalidInput, listed

_PORTS = {"http": 80, "https": 443}
_AMBIGUOUS = re.compile(r"[\\\s\x00-\x20\x7f]")


def parse_hosts(text: str) -> tuple[str, ...]:
    """Return the entries of a comma-separated list."""
    return tuple(entry.strip().lower() for entry in text.split(",") if entry.strip())


def host_allowed(entries: Iterable[str], url: str) -> bool:
    """Tell whether an entry matches the host of a URL.

    Returns False for a URL in which different parsers see different hosts.
    """
    if _AMBIGUOUS.search(url):
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    return bool(host) and any(_matches(entry, host, port) for entry in entries)


def _matches(entry: str, host: str, port: int | None) -> bool:
    pattern, own_port = _split(entry)
    if own_port and own_port != str(port):
        return False
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and host != pattern[1:]
    return pattern == host


def _split(entry: str) -> tuple[str, str]:
    """Return host and port of an entry; an IPv6 address with a port is in brackets."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") > 1:
        return entry, ""
    host, _, port = entry.partition(":")
    return host.rstrip("."), port


TOKEN_LIMIT = 16_384
"""Bytes of a token: servers accept no longer headers."""

AUTHORITY_LIMIT = 1 << 20
"""Bytes of PEM certificates: as many as a Secret may have."""

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_PRINTABLE = re.compile(rb"[\x21-\x7e]+")
_CLIENT_TEXT = re.compile(rb"[\x20-\x7e]+")
"""Source: RFC 6749, appendix A.1 and A.2."""
_RESERVED_TYPES = ("kubernetes.io/", "bootstrap.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token; `repr` does not show it."""

    value: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The header that carries the token."""
        return {"Authorization": f"Bearer {self.value}"}


def read_token(secret: Mapping[str, Any], key: str) -> Token | InvalidInput:
    """Return the token of a Secret; credentials of Kubernetes itself are refused."""
    metadata, label = secret["metadata"], _label(secret)
    if metadata["name"] == names.HUB_KUBECONFIG_SECRET or str(secret.get("type")).startswith(
        _RESERVED_TYPES
    ):
        message = f"{label} contains credentials of Kubernetes itself, which are never sent"
        return InvalidInput("SecretRefused", f"{message}: use a Secret of type Opaque")
    data = _data(secret, key)
    if isinstance(data, InvalidInput):
        return data
    return parse_token(data) or InvalidInput(
        "InvalidToken",
        f"{label}, key {key!r}: a token must be one line of at most {TOKEN_LIMIT} printable ASCII"
        " characters without spaces",
    )


def read_authority(secret: Mapping[str, Any], key: str) -> str | InvalidInput:
    """Return the PEM certificates of a Secret."""
    data = _data(secret, key)
    if isinstance(data, InvalidInput):
        return data
    if len(data) > AUTHORITY_LIMIT or not data.isascii() or _CERTIFICATE not in data:
        message = f"{_label(secret)}, key {key!r}: expected PEM certificates"
        return InvalidInput("InvalidAuthority", f"{message} of at most {AUTHORITY_LIMIT} bytes")
    return data.decode("ascii")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate with its chain, and its key, in PEM; `repr` shows neither."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


def read_certificate(secret: Mapping[str, Any]) -> ClientCertificate | InvalidInput:
    """Return the client certificate of a Secret; that of the agent for the hub is refused."""
    label = _label(secret)
    if secret["metadata"]["name"] == names.HUB_KUBECONFIG_SECRET:
        message = f"{label} is the agent's own identity on the hub, which is never shown to others"
        return InvalidInput("SecretRefused", f"{message}: use another certificate")
    certificate, key = _data(secret, CERTIFICATE_KEY), _data(secret, PRIVATE_KEY)
    if isinstance(certificate, InvalidInput):
        return certificate
    if isinstance(key, InvalidInput):
        return key
    if _CERTIFICATE not in certificate or b"PRIVATE KEY-----" not in key or b"ENCRYPTED" in key:
        message = f"{label}: expected a certificate in {CERTIFICATE_KEY} and its key in"
        return InvalidInput(
            "InvalidCertificate", f"{message} {PRIVATE_KEY}, in PEM and without a password"
        )
    return ClientCertificate(certificate, key)


def read_client(secret: Mapping[str, Any]) -> tuple[str, str] | InvalidInput:
    """Return ID and secret of the OAuth client in a Secret."""
    client_id, password = _data(secret, CLIENT_ID), _data(secret, CLIENT_SECRET)
    if isinstance(client_id, InvalidInput):
        return client_id
    if isinstance(password, InvalidInput):
        return password
    texts = client_id.strip(), password.strip()
    if any(len(text) > TOKEN_LIMIT or not _CLIENT_TEXT.fullmatch(text) for text in texts):
        message = f"{_label(secret)}: {CLIENT_ID} and {CLIENT_SECRET} must each be one line of at"
        return InvalidInput("InvalidClient", f"{message} most {TOKEN_LIMIT} printable characters")
    return texts[0].decode("ascii"), texts[1].decode("ascii")


def host_refused(secret: Mapping[str, Any], url: str) -> InvalidInput | None:
    """Return why the token of a Secret may not be sent to the host of a URL; None if it may."""
    annotations = secret["metadata"].get("annotations") or {}
    text = annotations.get(names.ALLOWED_HOSTS_ANNOTATION)
    if text is None or host_allowed(parse_hosts(str(text)), url):
        return None
    message = f"the annotation {names.ALLOWED_HOSTS_ANNOTATION} of {_label(secret)}"
    return InvalidInput("HostNotAllowed", f"{message} does not list the host of {display_url(url)}")


def _label(secret: Mapping[str, Any]) -> str:
    metadata = secret["metadata"]
    return f"Secret {metadata.get('namespace', '')}/{metadata['name']}"


def _data(secret: Mapping[str, Any], key: str) -> bytes | InvalidInput:
    """Return the value of a key; empty, which no caller accepts, if it is not base64."""
    data = secret.get("data") or {}
    if key not in data:
        known = listed(sorted(data)) or "none"
        message = f"{_label(secret)} has no key {key!r}; it has: {known}"
        return InvalidInput("SecretKeyNotFound", message)
    try:
        return b64decode(str(data[key]), validate=True)
    except ValueError:
        return b""


def parse_token(data: bytes) -> Token | None:
    """Return the token in the data of a file or Secret; None if no header can carry it."""
    value = data.strip()
    if len(value) > TOKEN_LIMIT or not _PRINTABLE.fullmatch(value):
        return None
    return Token(value.decode("ascii"))
