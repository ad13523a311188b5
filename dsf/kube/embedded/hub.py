"""The adapter for an API server in memory."""

import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from dsf.api.crd.definitions import crds as product_crds
from dsf.kube import json_merge_patch
from dsf.kube.clock import utc_now
from dsf.kube.embedded import list_and_watch
from dsf.kube.embedded.api_server import UNCHECKED, ApiServer, WriteOptions
from dsf.kube.embedded.reviews import NOBODY, AccessTable
from dsf.kube.embedded.revisions import HISTORY
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, ObjectList, Subresource, WatchEvent
from dsf.kube.resources.ocm import ocm_crds
from dsf.kube.schema.json_values import accepted, copied


@cache
def _product_crds() -> tuple[Object, ...]:
    return tuple(map(accepted, product_crds()))


class EmbeddedHub:
    """A Kubernetes API server in memory; implements `dsf.kube.port.Kube`.

    It serves the built-in kinds that the product needs, OCM's kinds, and the kinds of `crds`, by
    default the product's own. A CRD in `crds` replaces OCM's of the same name. `history` is how
    many writes of each resource a watch may be behind. A namespace must exist before an object is
    created in it. `access` answers TokenReviews and SubjectAccessReviews; the hub itself accepts
    every caller.
    """

    def __init__(
        self,
        *,
        crds: Iterable[Mapping[str, Any]] | None = None,
        now: Callable[[], datetime] = utc_now,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        history: int = HISTORY,
        access: AccessTable = NOBODY,
    ) -> None:
        own = _product_crds() if crds is None else map(accepted, crds)
        served = {crd["metadata"]["name"]: crd for crd in (*ocm_crds(), *own)}
        self.server = ApiServer(
            crds=served.values(), now=now, new_uid=new_uid, history=history, access=access
        )

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        obj = self.server.current(kind, name, namespace)
        return _shown(kind, obj)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return a page of objects."""
        resource = self.server.catalog.resource(kind)
        chosen = list_and_watch.selection(resource, namespace, labels, fields)
        store = self.server.objects.store
        return list_and_watch.page(
            chosen,
            store.collection(kind.resource),
            store.revision,
            limit=limit,
            token=continue_token,
        )

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str,
        timeout_seconds: int = 270,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield every change after a resource version, in order and without a gap."""
        resource = self.server.catalog.resource(kind)
        chosen = list_and_watch.selection(resource, namespace, labels, fields)
        collection = self.server.objects.store.collection(kind.resource)
        return list_and_watch.changes(chosen, collection, resource_version, timeout_seconds)

    async def create(
        self, kind: Kind, obj: Mapping[str, Any], *, options: WriteOptions = UNCHECKED
    ) -> Object:
        """Create an object; `status` is dropped if the kind has a status subresource."""
        return _shown(kind, self.server.create(kind, obj, options))

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status."""
        metadata = obj.get("metadata") or {}
        name, namespace = str(metadata.get("name", "")), metadata.get("namespace")
        stored = self.server.replace(kind, name, namespace, obj, subresource=subresource)
        return _shown(kind, stored)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        """Apply a JSON merge patch."""
        stored = self.server.patch(
            kind,
            name,
            namespace,
            lambda old: json_merge_patch.merged(old, patch),
            subresource=subresource,
        )
        return _shown(kind, stored)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object; with finalizers, only set its `deletionTimestamp`."""
        self.server.delete(kind, name, namespace, uid=uid, resource_version=resource_version)

    def end_watches(self) -> None:
        """End all watches, as a server does when it shuts down; clients then watch again."""
        self.server.objects.store.end_watches()


def _shown(kind: Kind, stored: Object) -> Object:
    return {**copied(stored), "apiVersion": kind.api_version}
