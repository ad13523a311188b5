"""Parse an HTTP request: the resource and object of its path, its options, its body.

kubectl sends some objects in Kubernetes' protobuf form: `create configmap|secret|namespace` and
`auth can-i|whoami`. Only their kinds are decoded; answers are JSON. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding and the
`generated.proto` files of k8s.io/api and k8s.io/apimachinery, which define the field numbers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, get_args

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClassesForFiles
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


_PROTO = """
message Unknown { TypeMeta typeMeta = 1; bytes raw = 2; }
message TypeMeta { string apiVersion = 1; string kind = 2; }
message ObjectMeta {
  string name = 1; string generateName = 2; string namespace = 3; string uid = 5;
  string resourceVersion = 6; repeated TextEntry labels = 11; repeated TextEntry annotations = 12;
  repeated OwnerReference ownerReferences = 13; repeated string finalizers = 14;
}
message OwnerReference {
  string kind = 1; string name = 3; string uid = 4; string apiVersion = 5; bool controller = 6;
  bool blockOwnerDeletion = 7;
}
message ConfigMap {
  ObjectMeta metadata = 1; repeated TextEntry data = 2; repeated BytesEntry binaryData = 3;
  bool immutable = 4;
}
message Secret {
  ObjectMeta metadata = 1; repeated BytesEntry data = 2; string type = 3;
  repeated TextEntry stringData = 4; bool immutable = 5;
}
message Namespace { ObjectMeta metadata = 1; }
message SelfSubjectReview { ObjectMeta metadata = 1; }
message SelfSubjectAccessReview { ObjectMeta metadata = 1; AccessSpec spec = 2; }
message AccessSpec {
  ResourceAttributes resourceAttributes = 1; NonResourceAttributes nonResourceAttributes = 2;
}
message ResourceAttributes {
  string namespace = 1; string verb = 2; string group = 3; string version = 4;
  string resource = 5; string subresource = 6; string name = 7;
}
message NonResourceAttributes { string path = 1; string verb = 2; }
message SelfSubjectRulesReview { ObjectMeta metadata = 1; RulesSpec spec = 2; }
message RulesSpec { string namespace = 1; }
message TextEntry { string key = 1; string value = 2; }
message BytesEntry { string key = 1; bytes value = 2; }
"""
"""What is read of Kubernetes' `generated.proto` files, a map as its entries on the wire."""
_KINDS = {
    **dict.fromkeys(("ConfigMap", "Secret", "Namespace"), "v1"),
    "SelfSubjectReview": "authentication.k8s.io/v1",
    **dict.fromkeys(
        ("SelfSubjectAccessReview", "SelfSubjectRulesReview"), "authorization.k8s.io/v1"
    ),
}


def read_protobuf(data: bytes) -> dict[str, Any]:
    """Return the object in a body; raises ValueError if it is malformed or of another kind."""
    if not data.startswith(_MAGIC):
        raise ValueError("it is not Kubernetes protobuf")
    classes = _message_classes()
    try:
        envelope = classes["Unknown"].FromString(data[len(_MAGIC) :])
        type_ = MessageToDict(envelope.typeMeta)
        kind = type_.get("kind", "")
        if _KINDS.get(kind) != type_.get("apiVersion", ""):
            raise ValueError(f"{kind or 'an object without a kind'} can only be sent as JSON")
        return {**type_, **MessageToDict(classes[kind].FromString(envelope.raw))}
    except DecodeError as error:
        raise ValueError("it is malformed protobuf") from error


@cache
def _message_classes() -> Mapping[str, Any]:
    file = FileDescriptorProto(name="kubectl.proto", syntax="proto3")
    for name, body in re.findall(r"message (\w+) \{([^}]*)\}", _PROTO):
        message = file.message_type.add(name=name)
        message.options.map_entry = name.endswith("Entry")
        for many, type_, field, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body):
            message.field.add(
                name=field,
                json_name=field,
                number=int(number),
                label="LABEL_REPEATED" if many else "LABEL_OPTIONAL",
                **{"type": f"TYPE_{type_.upper()}"}
                if type_.islower()
                else {"type_name": f".{type_}"},
            )
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClassesForFiles([file.name], pool)
