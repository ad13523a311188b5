"""The key that signs records: a Secret, which the first optimizer that needs it makes."""

import base64
import binascii
import secrets

from dsf.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube, Object
from optimizer.follow.record.recorded_plan import KEY_BYTES, RecordKey

FIELD = "key"
"""The field of the Secret's data."""


class RecordKeys:
    """Reads the key once, or makes it. `secret`: namespace and name of the Secret.

    `unreadable`: why a call returned none.
    """

    def __init__(self, kube: Kube, secret: tuple[str, str]) -> None:
        self._kube = kube
        self._namespace, self._name = secret
        self._key: RecordKey | None = None
        self.unreadable = ""

    async def known(self) -> RecordKey | None:
        """Return the key; None where nobody made it yet, or this process may not read it."""
        if self._key is None:
            try:
                self._key = self._key_of(await self._kube.get(SECRET, self._name, self._namespace))
            except (NotFound, Forbidden) as error:
                self.unreadable = f"{self._called}, whose key signs records: {error}"
        return self._key

    async def made(self) -> RecordKey | None:
        """Return the key, which is made where there is none; None where that is not allowed."""
        if await self.known() is None:
            try:
                await self._kube.create(SECRET, self._new())
            except AlreadyExists:
                pass
            except (NotFound, Forbidden) as error:
                self.unreadable = f"{self._called}, whose key signs records: {error}"
                return None
        return await self.known()

    @property
    def _called(self) -> str:
        return f"Secret {self._name} of namespace {self._namespace}"

    def _new(self) -> Object:
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        metadata = {"name": self._name, "namespace": self._namespace}
        return SECRET.object(metadata=metadata, type="Opaque", immutable=True, data={FIELD: key})

    def _key_of(self, secret: Object) -> RecordKey:
        """Return the key of a Secret; raises KubeError for one that has none."""
        try:
            key = base64.b64decode((secret.get("data") or {}).get(FIELD) or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            key = b""
        if len(key) < KEY_BYTES:
            raise KubeError(
                f"{self._called} has no {FIELD} of {KEY_BYTES} bytes in base64: delete it, and the"
                " optimizer makes a new one; plans that were recorded before can't be restored then"
            )
        return RecordKey(key)
