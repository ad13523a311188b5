"""Builders of kubeconfig files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def kubeconfig(
    server: str, *, user: Mapping[str, Any] | None = None, cluster: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A kubeconfig of one cluster, and of one user where there is something to say of it."""
    context = {"cluster": "c"} | ({"user": "u"} if user else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": context}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user}] if user else [],
    }


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(document))
    return path
