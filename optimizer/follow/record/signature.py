"""Signatures of records: proof that the optimizer wrote a PlacementPlan, and how far it is.

HMAC-SHA256 (RFC 2104) with a key that the optimizer alone reads. It covers the UID, which the API
server gives: a copy of a signed record is not signed.
"""

import hmac
from dataclasses import dataclass, field
from typing import Literal

from dsf.api.invalid_input import InvalidInput

SignedPart = Literal["spec", "progress"]

KEY_BYTES = 32
"""Size of a key: that of the hash."""


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The key with which the optimizer signs records."""

    secret: bytes = field(repr=False)

    def signature(self, uid: str, part: SignedPart, digest: str) -> str:
        """Return the signature of a part of the object with this UID, by the part's digest."""
        return hmac.new(self.secret, f"{uid} {part} {digest}".encode(), "sha256").hexdigest()

    def signed(self, uid: str, part: SignedPart, digest: str, signature: str | None) -> bool:
        """Return whether that signature is the one of this key."""
        expected = self.signature(uid, part, digest)
        return bool(uid) and hmac.compare_digest(expected.encode(), (signature or "").encode())


NOT_SIGNED = InvalidInput(
    "RecordNotSigned",
    "it is not signed: the optimizer did not write it, its writer ended before it was whole, or"
    " an earlier version wrote it",
)
"""Why a record is not what the optimizer decided."""
NOT_VERIFIED = InvalidInput(
    "RecordNotVerified",
    "whether the optimizer wrote it is not known, because the key that signs records can't be read:"
    " ask the optimizer's service, which has it",
)
"""Why nobody without the key can tell that a record is what the optimizer decided."""
EDITED = InvalidInput("RecordEdited", "someone edited it: its recordDigest does not match")
