"""Parse an HTTP request: the resource and object of its path, its options, its body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from starlette.requests import Request

from dsf.kube.embedded.api_server import FieldValidation, WriteOptions
from dsf.kube.embedded.http import protobuf
from dsf.kube.errors import ApiError, BadRequest
from dsf.kube.port import Subresource
from dsf.kube.resources.resource_catalog import Catalog, Resource
from dsf.kube.yaml_documents import parsed_json

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a request body, as in kube-apiserver."""
JSON = "application/json"
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
    accepted = accepted or (JSON, protobuf.MEDIA_TYPE)
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
    parsed = protobuf.decoded if sent_as == protobuf.MEDIA_TYPE else parsed_json
    try:
        return parsed(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body of the request can't be read: {error}") from error


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a body that is a JSON object; raises BadRequest otherwise."""
    if not isinstance(value, Mapping):
        raise BadRequest("the body of the request is not an object")
    return value
