"""Bearer tokens from Secrets of the agent's namespace on the managed cluster."""

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api import names
from dsf.api.invalid import Invalid
from dsf.kube.errors import KubeError, NotFound
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube

TOKEN_LIMIT = 16_384

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


@dataclass(frozen=True, slots=True)
class Secrets:
    """The Secrets of one namespace; `kube` is None where the agent knows no API server."""

    kube: Kube | None
    namespace: str

    async def token(self, name: str, key: str) -> Token | Invalid | None:
        """Return the token under a key of a Secret; None where no Secret is named.

        The Secret is read at each call, so that a rotated token acts at once.
        """
        if not name:
            return None
        if self.kube is None:
            message = f"Secret {name} cannot be read without the managed cluster's kubeconfig"
            return Invalid("SecretUnreadable", message)
        try:
            secret = await self.kube.get(SECRET, name, self.namespace)
        except NotFound:
            message = f"Secret {self.namespace}/{name} does not exist on this managed cluster"
            return Invalid("SecretNotFound", f"{message}: create it with the token")
        except KubeError as error:
            message = f"Secret {self.namespace}/{name} could not be read: {error}"
            return Invalid("SecretUnreadable", message)
        return read_token(secret, key)


def read_token(secret: Mapping[str, Any], key: str) -> Token | Invalid:
    """Return the token that a Secret holds; no message ever contains what it holds."""
    metadata = secret["metadata"]
    label = f"Secret {metadata.get('namespace', '')}/{metadata['name']}"
    if metadata["name"] == names.HUB_KUBECONFIG_SECRET or str(secret.get("type")).startswith(
        _RESERVED_TYPES
    ):
        message = f"{label} holds Kubernetes' own credentials, which are never sent to others"
        return Invalid("SecretRefused", f"{message}: use a Secret of type Opaque")
    data = secret.get("data") or {}
    if key not in data:
        known = ", ".join(sorted(data)) or "none"
        return Invalid("SecretKeyNotFound", f"{label} has no key {key!r}; it has: {known}")
    return _decoded(str(data[key])) or Invalid(
        "InvalidToken",
        f"{label}, key {key!r}: a token must be one line of at most {TOKEN_LIMIT} printable ASCII"
        " characters without spaces",
    )


def _decoded(text: str) -> Token | None:
    try:
        value = b64decode(text, validate=True).strip()
    except ValueError:
        return None
    if len(value) > TOKEN_LIMIT or not _PRINTABLE.fullmatch(value):
        return None
    return Token(value.decode("ascii"))
