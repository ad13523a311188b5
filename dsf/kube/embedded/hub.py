"""The embedded hub: the port, in memory."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from dsf.kube import merge
from dsf.kube.embedded.store import Store, key
from dsf.kube.embedded.values import accepted, copied
from dsf.kube.errors import AlreadyExists, Conflict, NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, ObjectList, Propagation, Subresource, WatchEvent


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _new_uid() -> str:
    return str(uuid.uuid4())


class EmbeddedHub:
    """A Kubernetes API server in memory; implements `dsf.kube.port.Kube`."""

    def __init__(
        self,
        *,
        crds: list[Object] | None = None,
        now: Callable[[], datetime] = _utc_now,
        new_uid: Callable[[], str] = _new_uid,
    ) -> None:
        self._now = now
        self._new_uid = new_uid
        self._store = Store()

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        return copied(self._current(kind, name, namespace))

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
        objects = self._store.collection(kind.resource).objects
        items = tuple(copied(objects[k]) for k in sorted(objects) if _within(k, namespace))
        return ObjectList(items, str(self._store.revision))

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str,
        timeout_seconds: int = 270,
    ) -> AsyncIterator[WatchEvent]:
        """Yield every change after a resource version."""
        collection = self._store.collection(kind.resource)
        after = int(resource_version)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        with collection.waiting() as changed:
            while True:
                changed.clear()
                for change in collection.since(after):
                    after = change.revision
                    if not _within(change.key, namespace):
                        continue
                    if change.after is None:
                        yield WatchEvent("DELETED", copied(change.last))
                    elif change.before is None:
                        yield WatchEvent("ADDED", copied(change.last))
                    else:
                        yield WatchEvent("MODIFIED", copied(change.last))
                try:
                    async with asyncio.timeout_at(deadline):
                        await changed.wait()
                except TimeoutError:
                    return

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object."""
        new = accepted(obj)
        metadata = new.setdefault("metadata", {})
        if not metadata.get("name"):
            metadata["name"] = metadata["generateName"] + self._new_uid()[:5]
        if (
            key(metadata.get("namespace"), metadata["name"])
            in self._store.collection(kind.resource).objects
        ):
            raise AlreadyExists(f'{kind.resource} "{metadata["name"]}" already exists')
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        new.pop("status", None)
        metadata["uid"] = self._new_uid()
        metadata["creationTimestamp"] = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["generation"] = 1
        return copied(self._store.put(kind.resource, new))

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status."""
        new = accepted(obj)
        metadata = new["metadata"]
        old = self._current(kind, metadata["name"], metadata.get("namespace"))
        return self._replace(kind, old, new, subresource)

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
        old = self._current(kind, name, namespace)
        return self._replace(kind, old, merge.merged(old, accepted(patch)), subresource)

    def _replace(self, kind: Kind, old: Object, new: Object, subresource: str | None) -> Object:
        version = new["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.resource} "{old["metadata"]["name"]}": '
                "the object has been modified; please apply your changes to the latest version "
                "and try again"
            )
        if subresource == "status":
            new = {**old, "status": new.get("status")}
        else:
            new = {**new, "status": old.get("status")}
        if new["status"] is None:
            del new["status"]
        for field in ("uid", "creationTimestamp", "generation"):
            new["metadata"] = {**new["metadata"], field: old["metadata"][field]}
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return copied(old)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            return copied(self._store.remove(kind.resource, new))
        return copied(self._store.put(kind.resource, new))

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete an object, or mark it as being deleted while it has finalizers."""
        old = self._current(kind, name, namespace)
        if uid and uid != old["metadata"]["uid"]:
            raise Conflict("the UID in the precondition does not match")
        if old["metadata"].get("finalizers"):
            stamp = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
            new = copied(old)
            new["metadata"]["deletionTimestamp"] = stamp
            self._store.put(kind.resource, new)
        else:
            self._store.remove(kind.resource, old)

    def _current(self, kind: Kind, name: str, namespace: str | None) -> Object:
        found = self._store.collection(kind.resource).objects.get(key(namespace, name))
        if found is None:
            raise NotFound(
                f'{kind.resource} "{name}" not found',
                details={"name": name, "group": kind.group, "kind": kind.plural},
            )
        return found


def _within(object_key: str, namespace: str | None) -> bool:
    return not namespace or object_key.startswith(f"{namespace}/")
