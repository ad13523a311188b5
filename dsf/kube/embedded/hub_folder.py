"""Load the objects of a hub from YAML files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsf.kube import kinds
from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.errors import ApiError
from dsf.kube.files.yaml_documents import YamlDocument, YamlFileError, documents
from dsf.kube.port import Object

_FIRST = (kinds.CUSTOM_RESOURCE_DEFINITION.kind, kinds.NAMESPACE.kind)


def load(hub: EmbeddedHub, place: Path) -> list[Object]:
    """Store the objects of a file, or of all files below a folder, in a hub; return them.

    Objects keep their status, uid and times. Missing metadata is set as on creation, and missing
    namespaces are created. Unknown fields are refused. Raises YamlFileError, which names the file,
    the document and the field; then nothing has been stored.
    """
    found = sorted(_objects(place), key=lambda document: _rank(document.value))
    with hub.server.all_or_nothing():
        for document in found:
            _restore(hub, document)
    return [document.value for document in found]


def _objects(place: Path) -> Iterator[YamlDocument]:
    for document in documents(place):
        value = document.value
        if isinstance(value, dict) and str(value.get("kind", "")).endswith("List"):
            for item in value.get("items") or ():
                yield YamlDocument(document.path, document.number, item)
        else:
            yield document


def _rank(value: Any) -> int:
    kind = value.get("kind") if isinstance(value, dict) else None
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


def _restore(hub: EmbeddedHub, document: YamlDocument) -> None:
    value = document.value
    if not isinstance(value, dict) or not value.get("apiVersion") or not value.get("kind"):
        raise YamlFileError(f"{document}: not a Kubernetes object: it needs apiVersion and kind")
    api_version, kind = str(value["apiVersion"]), str(value["kind"])
    resource = hub.server.catalog.by_kind(api_version, kind)
    if resource is None:
        served = ", ".join(sorted({r.kind.kind for r in hub.server.catalog.all()}))
        raise YamlFileError(
            f"{document}: {kind} in {api_version} is not served; served are {served}"
        )
    try:
        hub.server.restore(resource, value)
    except ApiError as error:
        raise YamlFileError(f"{document}: {error.message}") from error
    except TypeError as error:
        raise YamlFileError(f"{document}: {error}") from error
