"""The content of a record: what a plan was asked for, what it decided, generated and changed."""

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from dsf.api.invalid_input import InvalidInput
from dsf.api.json_input import value_count
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.follow.record.recorded_facts import RecordedFacts
from optimizer.wire.base import GeneratedObject, ResultPart
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import PlannedChange, Unplaced

MAX_CONTENT_CHARACTERS = 1_000_000
"""Etcd refuses requests above 1.5 MiB; the other fields of a record and its status need a part."""

MAX_CONTENT_BYTES = 16 * 1024 * 1024
"""Unpacked size of a content: four times that of 5,000 workloads on 1,000 clusters."""

MAX_CONTENT_VALUES = 400_000
"""Values of a content, nearly twice those of 5,000 workloads on 1,000 clusters.

They bound the memory and the time to read one: the worst takes 160 MB and 1.5 s on a slow core,
during which other threads wait. Source: python -m benchmarks.optimizer.records.
"""

Content = TypeVar("Content", bound=ResultPart)


class RecordContent(ResultPart):
    """The part of a record that is packed.

    `assumptions`: what each enforced policy supplied and each assigned workload requested, net of
    what others used. `stated`, `digests`, `placements`: what the objects said themselves, see
    RecordedFacts. All three and `unplaced` are empty in records of versions that did not keep them.
    """

    request: Mapping[str, Any]
    policies: tuple[PolicyEnforcement, ...]
    assignments: tuple[Assignment, ...]
    objects: tuple[GeneratedObject, ...]
    changes: tuple[PlannedChange, ...]
    assumptions: Mapping[str, str]
    unplaced: tuple[Unplaced, ...] = ()
    stated: Mapping[str, str] = {}
    digests: Mapping[str, Mapping[str, str]] = {}
    placements: Mapping[str, str] = {}

    def asked(self) -> OptimizeRequest | InvalidInput:
        """Return the request, as this version reads it."""
        try:
            return OptimizeRequest.model_validate(self.request)
        except ValidationError:
            return InvalidInput("UnreadableRecord", "its request is none that this version knows")

    @property
    def facts(self) -> RecordedFacts:
        """What the objects said themselves."""
        return RecordedFacts(self.stated, self.digests, self.placements)

    @property
    def decision(self) -> Decision:
        """The decision, in the order of the problem that it solved."""
        return Decision(self.policies, self.assignments)


def packed(content: ResultPart, most: int = MAX_CONTENT_CHARACTERS) -> str | None:
    """Return a content as JSON, compressed by gzip, in base64; None if it could not be read."""
    text = content.model_dump_json().encode()
    if not _is_admissible(text):
        return None
    found = base64.b64encode(gzip.compress(text, mtime=0)).decode()
    return found if len(found) <= most else None


def unpacked(text: str, of: type[Content]) -> Content | InvalidInput:
    """Return the content that was packed. Await it in a thread: a large one takes a second."""
    try:
        data = _decompressed(base64.b64decode(text))
        if not _is_admissible(data):
            return InvalidInput("UnreadableRecord", f"its content has {_TOO_MUCH}")
        return of.model_validate_json(data)
    except (binascii.Error, zlib.error, ValidationError, ValueError) as error:
        return InvalidInput(
            "UnreadableRecord", f"its content can't be read: {type(error).__name__}"
        )


_TOO_MUCH = f"more than {MAX_CONTENT_BYTES} bytes or {MAX_CONTENT_VALUES} values"


def _is_admissible(text: bytes) -> bool:
    return len(text) <= MAX_CONTENT_BYTES and value_count(text) <= MAX_CONTENT_VALUES


def _decompressed(data: bytes) -> bytes:
    """Return inflated data, or so much of it that it is known to be too large."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    found = stream.decompress(data, MAX_CONTENT_BYTES + 1)
    if not stream.eof and len(found) <= MAX_CONTENT_BYTES:
        raise ValueError("incomplete")
    return found
