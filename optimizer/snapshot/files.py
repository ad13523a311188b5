"""Reads the documents of files as Kubernetes objects or as a request, for `dsf plan`."""

from collections.abc import Iterator

from pydantic import ValidationError

from dsf.kube.embedded.yaml_documents import YamlDocument, YamlFileError
from dsf.kube.port import Object
from optimizer.wire.field_problems import field_problems
from optimizer.wire.request import REQUEST_FIELDS, OptimizeRequest

_REQUEST_FIELD = "targetWorkloads"


def is_object(found: YamlDocument) -> bool:
    """Tell whether a document is a Kubernetes object."""
    return isinstance(found.value, dict) and {"apiVersion", "kind"} <= set(found.value)


def is_request(found: YamlDocument) -> bool:
    """Tell whether a document looks like the body of POST /optimize."""
    return isinstance(found.value, dict) and _REQUEST_FIELD in found.value


def objects(found: YamlDocument) -> Iterator[Object]:
    """Yield the objects of a document; a List yields each of its items.

    Raises YamlFileError if one has no name.
    """
    items = found.value.get("items") if str(found.value["kind"]).endswith("List") else None
    for item in [found.value] if items is None else items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise YamlFileError(f"{found.path}: an object without metadata.name")
        yield item


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
