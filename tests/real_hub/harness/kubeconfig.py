"""Kubeconfig files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import yaml

from .certificates import KeyPair, write_secret

if TYPE_CHECKING:
    from pathlib import Path


def encoded(path: Path) -> str:
    """A file as kubeconfig's ``*-data`` fields want it."""
    return base64.b64encode(path.read_bytes()).decode()


def write_kubeconfig(
    path: Path,
    *,
    server: str,
    ca: Path,
    client: KeyPair | None = None,
    token: str = "",
    namespace: str = "default",
) -> Path:
    """Write a self-contained kubeconfig with a client certificate or a bearer token."""
    user: dict[str, Any] = {"token": token} if token else {}
    if client:
        user["client-certificate-data"] = encoded(client.certificate)
        user["client-key-data"] = encoded(client.key)
    cluster = {"server": server, "certificate-authority-data": encoded(ca)}
    context = {"cluster": "hub", "user": "user", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "context", "context": context}],
        "current-context": "context",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_secret(path, yaml.safe_dump(document).encode())
    return path
