"""What Secrets hold: bearer tokens, the hosts that may have them, authorities.

No message ever contains what a Secret holds.
"""

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.agent.wire import allowed_hosts
from dsf.agent.wire.http_answer import shown
from dsf.api import names
from dsf.api.invalid_input import InvalidInput

TOKEN_LIMIT = 16_384
AUTHORITY_LIMIT = 1 << 20

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_PRINTABLE = re.compile(rb"[\x21-\x7e]+")
_RESERVED_TYPES = ("kubernetes.io/", "bootstrap.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token; its representation does not show it."""

    value: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The header that carries it."""
        return {"Authorization": f"Bearer {self.value}"}


def read_token(secret: Mapping[str, Any], key: str) -> Token | InvalidInput:
    """Return the token that a Secret holds."""
    metadata, label = secret["metadata"], _label(secret)
    if metadata["name"] == names.HUB_KUBECONFIG_SECRET or str(secret.get("type")).startswith(
        _RESERVED_TYPES
    ):
        message = f"{label} holds Kubernetes' own credentials, which are never sent to others"
        return InvalidInput("SecretRefused", f"{message}: use a Secret of type Opaque")
    data = _data(secret, key)
    if isinstance(data, InvalidInput):
        return data
    return clean(data) or InvalidInput(
        "InvalidToken",
        f"{label}, key {key!r}: a token must be one line of at most {TOKEN_LIMIT} printable ASCII"
        " characters without spaces",
    )


def read_authority(secret: Mapping[str, Any], key: str) -> str | InvalidInput:
    """Return the PEM certificates that a Secret holds."""
    data = _data(secret, key)
    if isinstance(data, InvalidInput):
        return data
    if len(data) > AUTHORITY_LIMIT or not data.isascii() or _CERTIFICATE not in data:
        message = f"{_label(secret)}, key {key!r}: PEM certificates are needed"
        return InvalidInput(
            "InvalidAuthority", f"{message}, at most {AUTHORITY_LIMIT} bytes of them"
        )
    return data.decode("ascii")


def host_refused(secret: Mapping[str, Any], url: str) -> InvalidInput | None:
    """Return why a Secret's token may not be sent to a URL's host; None where it may."""
    annotations = secret["metadata"].get("annotations") or {}
    text = annotations.get(names.ALLOWED_HOSTS_ANNOTATION)
    if text is None or allowed_hosts.allowed(allowed_hosts.listed(str(text)), url):
        return None
    message = f"the annotation {names.ALLOWED_HOSTS_ANNOTATION} of {_label(secret)}"
    return InvalidInput("HostNotAllowed", f"{message} does not list the host of {shown(url)}")


def _label(secret: Mapping[str, Any]) -> str:
    metadata = secret["metadata"]
    return f"Secret {metadata.get('namespace', '')}/{metadata['name']}"


def _data(secret: Mapping[str, Any], key: str) -> bytes | InvalidInput:
    """Return the value of a key; one that is no base64 is empty, which nothing accepts."""
    data = secret.get("data") or {}
    if key not in data:
        known = ", ".join(sorted(data)) or "none"
        message = f"{_label(secret)} has no key {key!r}; it has: {known}"
        return InvalidInput("SecretKeyNotFound", message)
    try:
        return b64decode(str(data[key]), validate=True)
    except ValueError:
        return b""


def clean(data: bytes) -> Token | None:
    """Return the token in a file or Secret; None for what no header can carry."""
    value = data.strip()
    if len(value) > TOKEN_LIMIT or not _PRINTABLE.fullmatch(value):
        return None
    return Token(value.decode("ascii"))
