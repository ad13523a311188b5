"""Reads the documents of files as Kubernetes objects or as a request, for `dsf plan`."""

from collections.abc import Iterator
from typing import Any, cast

from pydantic import ValidationError

from dsf.kube.port import Object
from dsf.kube.yaml_documents import YamlDocument, YamlFileError
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import REQUEST_FIELDS, field_problems

_REQUEST_FIELD = "targetWorkloads"


def is_object(found: YamlDocument) -> bool:
    """Tell whether a document is a Kubernetes object."""
    return isinstance(found.value, dict) and {"apiVersion", "kind"} <= set(found.value)


def is_request(found: YamlDocument) -> bool:
    """Tell whether a document looks like the body of POST /optimize."""
    return isinstance(found.value, dict) and _REQUEST_FIELD in found.value


def objects(found: YamlDocument) -> Iterator[Object]:
    """Yield the objects of a document; a List yields each of its items.

    Items of a list of one kind, such as a PlacementList, need not repeat the kind. Raises
    YamlFileError for what is no object, or has no name.
    """
    kind, items = str(found.value["kind"]), found.value.get("items")
    if not kind.endswith("List") or items is None:
        yield _named(found.value, str(found.path))
        return
    if not isinstance(items, list):
        raise YamlFileError(f"{found.path}: items of a {kind} must be a list")
    one = kind.removesuffix("List")
    stated = {"apiVersion": found.value["apiVersion"], "kind": one} if one else {}
    for number, item in enumerate(items):
        whole = {**stated, **item} if isinstance(item, dict) else item
        yield _named(whole, f"{found.path}: items[{number}]")


def _named(value: Any, place: str) -> Object:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise YamlFileError(f"{place}: an object without metadata.name")
    if not {"apiVersion", "kind"} <= value.keys():
        raise YamlFileError(f"{place}: an object without apiVersion and kind")
    return cast("Object", value)


def request_of(found: YamlDocument) -> OptimizeRequest:
    """Return a document as a request. Raises YamlFileError, which names each wrong field."""
    try:
        return OptimizeRequest.model_validate(found.value)
    except ValidationError as error:
        problems = field_problems(
            error.errors(include_input=False, include_url=False), REQUEST_FIELDS
        )
        wrong = "; ".join(f"{item.field}: {item.message}" for item in problems)
        raise YamlFileError(f"{found.path}: {wrong}") from error
