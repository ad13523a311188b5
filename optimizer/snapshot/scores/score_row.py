"""One AddOnPlacementScore in few bytes: its names in one text, its values in an array."""

from array import array
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from dsf.api.scoring.placement_scores import status_written, valid_until
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.score_index import entries_of

_SEPARATOR = "\0"
_INT64 = (-(2**63), 2**63 - 1)
_SHARED_TEXTS = 256
_LARGEST_SHARED = 16_384
"""Bytes of a text that is kept to be shared: together at most 4 MiB."""


class ScoreRow:
    """The entries of an AddOnPlacementScore, and what answers about it read.

    `names`: those of its entries, joined; `entry_names` parts them. `values`: in the same order.
    `until`: until when it is valid, LONG_AGO if that can't be read, None: without end. `written`:
    when its status was written last, if the hub says so. Equal rows are of one version.
    """

    __slots__ = (
        "_range",
        "_rest",
        "_whole",
        "cluster",
        "names",
        "score",
        "until",
        "values",
        "version",
        "written",
    )

    def __init__(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self.cluster, self.score = str(metadata.get("namespace") or ""), name_of(obj)
        self.version = str(metadata.get("resourceVersion") or "")
        self.until, self.written = valid_until(obj), status_written(obj)
        status = obj.get("status") or {}
        stated, found = status.get("scores") or [], list(entries_of(obj))
        names = _SEPARATOR.join(name for name, _ in found)
        self.names = _shared(names.encode("utf-8", "surrogatepass"))
        self.values = _array([value for _, value in found])
        plain = names.count(_SEPARATOR) == len(found) - 1 and stated == [
            {"name": name, "value": value} for name, value in found
        ]
        self._whole = not plain
        self._range: tuple[float, int, int] | None = None
        kept = {**obj, "status": {k: v for k, v in status.items() if k != "scores"}}
        self._rest = msgspec.json.encode(kept if plain else obj)

    def __eq__(self, other: object) -> bool:
        """Return whether both are one version of one object."""
        return isinstance(other, ScoreRow) and self.version == other.version != ""

    __hash__ = None  # type: ignore[assignment]  # rows are no keys

    @property
    def object(self) -> Object:
        """The AddOnPlacementScore, made anew."""
        obj: dict[str, Any] = msgspec.json.decode(self._rest)
        if not self._whole:
            entries = zip(entry_names(self.names), self.values, strict=True)
            obj["status"]["scores"] = [{"name": name, "value": value} for name, value in entries]
        return obj

    @property
    def range(self) -> tuple[float, int, int]:
        """Mean, minimum and maximum of its values; 0 without any."""
        if self._range is None:
            values = self.values or [0]
            mean = round(sum(values) / len(values), 2)
            self._range = mean, min(values), max(values)
        return self._range

    def expired(self, now: datetime) -> bool:
        """Return whether its validity has passed."""
        return self.until is not None and self.until <= now


@lru_cache(_SHARED_TEXTS)
def _known(names: bytes) -> bytes:
    return names


def _shared(names: bytes) -> bytes:
    """Return the names as others have them: most clusters have the same entries."""
    return _known(names) if len(names) <= _LARGEST_SHARED else names


@lru_cache(_SHARED_TEXTS)
def entry_names(names: bytes) -> tuple[str, ...]:
    """Return the single names of a row's `names`."""
    return tuple(names.decode("utf-8", "surrogatepass").split(_SEPARATOR)) if names else ()


def _array(values: list[int]) -> "array[int]":
    """Return values as 32 bits, as the CRD limits them; files may have larger ones."""
    try:
        return array("i", values)
    except OverflowError:
        least, most = _INT64
        return array("q", [min(max(value, least), most) for value in values])
