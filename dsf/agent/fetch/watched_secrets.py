"""Caches named Secrets of the agent's namespace, each by a watch of its own.

A watch of one name needs permission for that Secret only: RBAC applies `resourceNames` to `list`
and `watch` with the field selector `metadata.name`. Source:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from dsf.api import names
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube, Object
from dsf.runtime.reconcile.reflector import View

SECRETS_LIMIT = 32
"""Watches that one agent keeps open; further Secrets are read at each call."""

BYTES_LIMIT = 1 << 16
"""Encoded bytes of one cached Secret; a larger one is read at each call."""


class WatchedSecrets:
    """A cache of Secrets, kept up to date while `run` runs."""

    def __init__(self, kube: Kube, namespace: str, secrets: Iterable[str]) -> None:
        self._namespace = namespace
        self._views = {
            name: View(kube, SECRET, namespace, fields=f"metadata.name={name}", read=_kept)
            for name in sorted(set(secrets))[:SECRETS_LIMIT]
        }
        self._doubted = dict[str, Mapping[str, Any]]()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for view in self._views.values():
                tasks.create_task(view.run())

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return a Secret from the cache, or None if it has to be read from the API server.

        A Secret is not in the cache if it is not watched, not synced yet, does not exist, is too
        large, or its token was refused.
        """
        known = self._known(name)
        return None if known is self._doubted.get(name) else known

    def doubt(self, name: str) -> None:
        """Bypass the cache for a Secret, because its token was refused and may be outdated.

        This ends when the watch delivers another version.
        """
        if known := self._known(name):
            self._doubted[name] = known

    def _known(self, name: str) -> Mapping[str, Any] | None:
        view = self._views.get(name)
        return view.items.get((self._namespace, name)) if view else None


def _kept(secret: Object) -> Mapping[str, Any] | None:
    """Return the fields that tokens and authorities are read from; None if they are too large."""
    metadata, data = secret["metadata"], secret.get("data") or {}
    if sum(len(str(value)) for value in data.values()) > BYTES_LIMIT:
        return None
    read = {key: metadata.get(key) for key in ("name", "namespace")}
    hosts = (metadata.get("annotations") or {}).get(names.ALLOWED_HOSTS_ANNOTATION)
    annotations = {} if hosts is None else {names.ALLOWED_HOSTS_ANNOTATION: hosts}
    return {
        "metadata": {**read, "annotations": annotations},
        "type": secret.get("type"),
        "data": data,
    }
