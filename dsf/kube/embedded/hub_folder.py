"""Load the objects of a hub from YAML files, and save them as a folder of YAML files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dsf.kube import kinds
from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.embedded.registry.resource_catalog import Resource
from dsf.kube.embedded.yaml_documents import YamlDocument, YamlFileError, documents
from dsf.kube.errors import ApiError
from dsf.kube.port import Object

__all__ = ["YamlFileError", "load", "save"]

_FIRST = (kinds.CUSTOM_RESOURCE_DEFINITION.kind, kinds.NAMESPACE.kind)
_TOP = ("apiVersion", "kind", "metadata", "spec")


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


def save(hub: EmbeddedHub, folder: Path) -> list[Path]:
    """Write every object of a hub to its own file; return the files in order.

    Equal hubs give equal files. The initial objects of every hub are omitted. Raises YamlFileError
    unless the folder is empty or absent.
    """
    if folder.exists() and any(folder.iterdir()):
        raise YamlFileError(f"{folder}: it is not empty; choose another folder")
    return [_written(folder, resource, obj) for resource, obj in hub.server.worth_saving()]


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


def _written(folder: Path, resource: Resource, obj: Object) -> Path:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    content = {**obj, "metadata": metadata}
    ordered = {key: _sorted(content[key]) for key in (*_TOP, *sorted(content)) if key in content}
    path: Path = folder / resource.kind.resource / metadata.get("namespace", "")
    path.mkdir(parents=True, exist_ok=True)
    file = path / f"{metadata['name']}.yaml"
    text = yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=100)
    file.write_text(text, encoding="utf-8")
    return file


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
