"""Objects in Kubernetes' protobuf form, which kubectl sends for some commands.

They are `kubectl create configmap|secret|namespace` and `kubectl auth can-i|whoami`. Only their
kinds are decoded; answers are JSON. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding and the
`generated.proto` files of k8s.io/api and k8s.io/apimachinery, which define the field numbers.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Read
    many: bool = False
    keyed: bool = False


def decoded(data: bytes) -> dict[str, Any]:
    """Return the object in a body; raises ValueError if it is malformed or of another kind."""
    if not data.startswith(_MAGIC):
        raise ValueError("it is not Kubernetes protobuf")
    envelope = _message(_ENVELOPE)(data[len(_MAGIC) :])
    type_, raw = envelope.get("type", {}), envelope.get("raw", b"")
    fields = _KINDS.get((type_.get("apiVersion"), type_.get("kind")))
    if fields is None:
        raise ValueError(f"{type_.get('kind')} can only be sent as JSON or YAML")
    return {**type_, **_message(fields)(raw)}


def _message(fields: Mapping[int, _Field]) -> Read:
    def read(data: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for number, value in _parts(_bytes(data)):
            field = fields.get(number)
            if field is None:
                continue
            if field.keyed:
                result.setdefault(field.name, {}).update(field.read(value))
            elif field.many:
                result.setdefault(field.name, []).append(field.read(value))
            elif (found := field.read(value)) not in ("", {}, 0):
                result[field.name] = found
        return result

    return read


def _map(value: Read) -> Read:
    entry = _message({1: _Field("key", _text), 2: _Field("value", value)})

    def read(data: bytes) -> dict[str, Any]:
        found = entry(data)
        return {found.get("key", ""): found.get("value", "")}

    return read


def _parts(data: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, place = _varint(data, place)
        elif wire in {_FIXED32, _FIXED64}:
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {wire} is not known")
        if place + size > len(data):
            raise ValueError("it is cut off")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a varint
            return value, place
    raise ValueError("it is cut off within a number")


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("the value is a number, not bytes")  # noqa: TRY004 - of the body
    return value


def _text(value: Any) -> str:
    return _bytes(value).decode()


def _base64(value: Any) -> str:
    return base64.b64encode(_bytes(value)).decode()


_OWNER = {
    1: _Field("kind", _text),
    3: _Field("name", _text),
    4: _Field("uid", _text),
    5: _Field("apiVersion", _text),
    6: _Field("controller", bool),
    7: _Field("blockOwnerDeletion", bool),
}
_METADATA = _Field(
    "metadata",
    _message(
        {
            1: _Field("name", _text),
            2: _Field("generateName", _text),
            3: _Field("namespace", _text),
            5: _Field("uid", _text),
            6: _Field("resourceVersion", _text),
            11: _Field("labels", _map(_text), keyed=True),
            12: _Field("annotations", _map(_text), keyed=True),
            13: _Field("ownerReferences", _message(_OWNER), many=True),
            14: _Field("finalizers", _text, many=True),
        }
    ),
)
_TYPE = {1: _Field("apiVersion", _text), 2: _Field("kind", _text)}
_ENVELOPE = {1: _Field("type", _message(_TYPE)), 2: _Field("raw", _bytes)}
_RESOURCE_ATTRIBUTES = {
    1: _Field("namespace", _text),
    2: _Field("verb", _text),
    3: _Field("group", _text),
    4: _Field("version", _text),
    5: _Field("resource", _text),
    6: _Field("subresource", _text),
    7: _Field("name", _text),
}
_NON_RESOURCE_ATTRIBUTES = {1: _Field("path", _text), 2: _Field("verb", _text)}
_ACCESS = {
    1: _Field("resourceAttributes", _message(_RESOURCE_ATTRIBUTES)),
    2: _Field("nonResourceAttributes", _message(_NON_RESOURCE_ATTRIBUTES)),
}
_KINDS: dict[tuple[Any, Any], Mapping[int, _Field]] = {
    ("v1", "ConfigMap"): {
        1: _METADATA,
        2: _Field("data", _map(_text), keyed=True),
        3: _Field("binaryData", _map(_base64), keyed=True),
        4: _Field("immutable", bool),
    },
    ("v1", "Secret"): {
        1: _METADATA,
        2: _Field("data", _map(_base64), keyed=True),
        3: _Field("type", _text),
        4: _Field("stringData", _map(_text), keyed=True),
        5: _Field("immutable", bool),
    },
    ("v1", "Namespace"): {1: _METADATA},
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {1: _METADATA},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: _METADATA,
        2: _Field("spec", _message(_ACCESS)),
    },
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        1: _METADATA,
        2: _Field("spec", _message({1: _Field("namespace", _text)})),
    },
}
