"""A wrapper by which statuses are applied: an embedded hub records no owners of fields."""

from collections.abc import Mapping
from typing import Any

from dsf.kube.errors import FIELD_MANAGER_CONFLICT, ApiError, Conflict
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object
from tests.kube_wrappers.wrapper import Wrapper

Owned = dict[tuple[str, str, str], frozenset[str]]
"""The fields that a manager has applied, by the object's namespace, its name and the manager."""


class Applying(Wrapper):
    """Applies fields of a status as a whole, as an API server applies scalars and atomic lists.

    What a manager has applied before and does not state any more is removed. A field that has
    another value is taken only from the manager itself.
    """

    def __init__(self, inner: Kube, owned: Owned) -> None:
        super().__init__(inner)
        self._owned = owned

    async def apply_status(self, kind: Kind, obj: Mapping[str, Any], *, manager: str) -> Object:
        """Apply the status of an object."""
        metadata, stated = obj["metadata"], obj.get("status") or {}
        at = (metadata["namespace"], metadata["name"], manager)
        found = await self.get(kind, metadata["name"], metadata["namespace"])
        status, owned = found.get("status") or {}, self._owned.get(at, frozenset())
        if metadata.get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            raise Conflict("the object has another uid")
        taken = [
            {"reason": FIELD_MANAGER_CONFLICT, "field": f".status.{name}"}
            for name, value in stated.items()
            if status.get(name, value) != value and name not in owned
        ]
        if taken:
            raise Conflict("Apply failed with 1 conflict", details={"causes": taken})
        body: dict[str, Any] = {"status": {**dict.fromkeys(owned), **stated}}
        if version := metadata.get("resourceVersion"):
            body["metadata"] = {"resourceVersion": version}
        self._owned[at] = frozenset(stated)
        try:
            return await self.patch(
                kind, metadata["name"], body, metadata["namespace"], subresource="status"
            )
        except ApiError:
            self._owned[at] = owned
            raise
