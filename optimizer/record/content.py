"""The content of a record: what a plan was asked for, what it decided, generated and changed."""

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from dsf.api.invalid_input import InvalidInput
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.wire.base import GeneratedObject, ResultPart
from optimizer.wire.result import PlannedChange, Unplaced

MAX_CONTENT_CHARACTERS = 1_000_000
"""Etcd refuses requests above 1.5 MiB; the other fields of a record and its status need a part."""

MAX_CONTENT_BYTES = 64 * 1024 * 1024
"""Unpacked size of a content: 30 times that of 5,000 workloads, so that no record fills memory."""


Content = TypeVar("Content", bound=ResultPart)


class RecordContent(ResultPart):
    """The part of a record that is packed.

    `assumptions`: what each enforced policy supplied and each assigned workload requested.
    `unplaced`: empty also in records of versions that did not keep it.
    """

    request: Mapping[str, Any]
    policies: tuple[PolicyEnforcement, ...]
    assignments: tuple[Assignment, ...]
    objects: tuple[GeneratedObject, ...]
    changes: tuple[PlannedChange, ...]
    assumptions: Mapping[str, str]
    unplaced: tuple[Unplaced, ...] = ()

    @property
    def decision(self) -> Decision:
        """The decision, in the order of the problem that it solved."""
        return Decision(self.policies, self.assignments)


def packed(content: ResultPart, most: int = MAX_CONTENT_CHARACTERS) -> str | None:
    """Return a content as JSON, compressed by gzip, in base64; None if that is too large."""
    text = content.model_dump_json().encode()
    found = base64.b64encode(gzip.compress(text, mtime=0)).decode()
    return found if len(found) <= most else None


def unpacked(text: str, of: type[Content]) -> Content | InvalidInput:
    """Return the content that was packed."""
    try:
        return of.model_validate_json(_decompressed(base64.b64decode(text)))
    except (binascii.Error, zlib.error, ValidationError, ValueError) as error:
        return InvalidInput(
            "UnreadableRecord", f"its content can't be read: {type(error).__name__}"
        )


def _decompressed(data: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    found = stream.decompress(data, MAX_CONTENT_BYTES)
    if not stream.eof:
        raise ValueError("incomplete, or too large")
    return found
