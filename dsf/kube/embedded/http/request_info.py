"""Parse an HTTP request: the resource and object of its path, its options, its body.

kubectl sends some objects in Kubernetes' protobuf form: `create configmap|secret|namespace` and
`auth can-i|whoami`. Only their kinds are decoded; answers are JSON. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding and the
`generated.proto` files of k8s.io/api and k8s.io/apimachinery, which define the field numbers.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from starlette.requests import Request

from dsf.kube.embedded.api_server import FieldValidation, WriteOptions
from dsf.kube.errors import ApiError, BadRequest
from dsf.kube.port import Subresource
from dsf.kube.resources.resource_catalog import Catalog, Resource
from dsf.kube.yaml_documents import parsed_json

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a request body, as in kube-apiserver."""
JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TRUE = frozenset({"true", "1", "t", "T", "TRUE", "True"})


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """What a path names: a collection, an object, or the status of an object."""

    resource: Resource
    namespace: str | None
    name: str | None = None
    subresource: Subresource | None = None


def target(catalog: Catalog, path: str) -> RequestInfo | None:
    """Return what a path names, or None if nothing is served there."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return _target(catalog, "", version, rest)
        case ["apis", group, version, *rest]:
            return _target(catalog, group, version, rest)
    return None


def _target(catalog: Catalog, group: str, version: str, parts: list[str]) -> RequestInfo | None:
    namespace, rest = None, parts
    if len(parts) > 2 and parts[0] == "namespaces" and parts[2] not in {"status", "finalize"}:  # noqa: PLR2004 - namespaces/NAME/plural
        namespace, rest = parts[1], parts[2:]
    resource = catalog.find(group, version, rest[0]) if rest and all(rest) else None
    if resource is None or (namespace and not resource.kind.namespaced):
        return None
    match rest[1:]:
        case []:
            return RequestInfo(resource, namespace)
        case [name] if namespace or not resource.kind.namespaced:
            return RequestInfo(resource, namespace, name)
        case [name, "status"] if resource.has_status:
            return RequestInfo(resource, namespace, name, "status")
    return None


def flag(request: Request, name: str) -> bool:
    """Return a boolean parameter."""
    return request.query_params.get(name, "") in _TRUE


def number(request: Request, name: str, default: int = 0) -> int:
    """Return a non-negative integer parameter; raises BadRequest for other text."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - no overflow
        raise BadRequest(f"{name} must be a whole number, not {text!r}")
    return int(text)


def options(request: Request) -> WriteOptions:
    """Return the options of a write; raises BadRequest for an unknown value."""
    validation = request.query_params.get("fieldValidation") or "Warn"
    if validation not in get_args(FieldValidation):
        raise BadRequest(f"fieldValidation must be Ignore, Warn or Strict, not {validation!r}")
    dry_run = request.query_params.getlist("dryRun")
    if any(value != "All" for value in dry_run):
        raise BadRequest(f"dryRun must be All, not {dry_run[0]!r}")
    return WriteOptions(cast("FieldValidation", validation), dry_run=bool(dry_run))


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_LIMIT:
            raise ApiError(
                f"Request entity too large: limit is {BODY_LIMIT}",
                code=413,
                reason="RequestEntityTooLarge",
            )
    return bytes(data)


def media_type(request: Request) -> str:
    """Return the content type without parameters; JSON by default."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower() or JSON


async def body(request: Request, *accepted: str, optional: bool = False) -> Any:
    """Return the parsed body; with `optional`, an empty object for none.

    Raises BadRequest, or an ApiError (413, 415) for a large body or another media type.
    """
    accepted = accepted or (JSON, PROTOBUF)
    if (sent_as := media_type(request)) not in accepted:
        raise ApiError(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(accepted),
            code=415,
            reason="UnsupportedMediaType",
        )
    data = await _read(request)
    if optional and not data:
        return {}
    parsed = read_protobuf if sent_as == PROTOBUF else parsed_json
    try:
        return parsed(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body of the request can't be read: {error}") from error


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a body that is a JSON object; raises BadRequest otherwise."""
    if not isinstance(value, Mapping):
        raise BadRequest("the body of the request is not an object")
    return value


_Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: _Read
    many: bool = False
    keyed: bool = False


def read_protobuf(data: bytes) -> dict[str, Any]:
    """Return the object in a body; raises ValueError if it is malformed or of another kind."""
    if not data.startswith(_MAGIC):
        raise ValueError("it is not Kubernetes protobuf")
    envelope = _message(_ENVELOPE)(data[len(_MAGIC) :])
    type_, raw = envelope.get("type", {}), envelope.get("raw", b"")
    fields = _KINDS.get((type_.get("apiVersion"), type_.get("kind")))
    if fields is None:
        raise ValueError(f"{type_.get('kind')} can only be sent as JSON")
    return {**type_, **_message(fields)(raw)}


def _message(fields: Mapping[int, _Field]) -> _Read:
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


def _map(value: _Read) -> _Read:
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
