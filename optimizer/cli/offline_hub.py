"""A hub in memory that holds what files say, checked by the same schemas as a real one."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.api_server import WriteOptions
from dsf.kube.embedded.yaml_documents import YamlDocument, YamlFileError, documents
from dsf.kube.errors import AlreadyExists, ApiError
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    NAMESPACE,
    PLACEMENT,
    PLACEMENT_BINDING,
    POLICY,
    Kind,
    find,
)
from dsf.kube.port import Object
from optimizer.snapshot.files import is_object, is_request, objects, request_of
from optimizer.wire.request import OptimizeRequest

_READ = frozenset(
    {
        ADD_ON_PLACEMENT_SCORE,
        DYNAMIC_SCORER,
        MANAGED_CLUSTER,
        MANIFEST_WORK_REPLICA_SET,
        PLACEMENT,
        PLACEMENT_BINDING,
        POLICY,
    }
)


@dataclass(frozen=True, slots=True)
class OfflineHub:
    """A hub made of files, the request found, and what was left out, in words."""

    hub: EmbeddedHub
    request: OptimizeRequest
    ignored: tuple[str, ...]


async def read_offline_hub(paths: Iterable[Path], request: Path | None) -> OfflineHub:
    """Read files and folders into a hub; YamlFileError where one of them can't be used.

    Without a file named for it, the request is the one document among the others that is one.
    """
    found = [document for path in paths for document in documents(path)]
    asked = _request(found, request)
    hub = EmbeddedHub()
    ignored: list[str] = []
    for document in found:
        if is_object(document):
            ignored += [
                text for obj in objects(document) if (text := await _add(hub, document, obj))
            ]
        elif not is_request(document):
            ignored.append(f"{document.path}: neither a Kubernetes object nor a request")
    return OfflineHub(hub, asked, tuple(ignored))


def _request(found: Iterable[YamlDocument], named: Path | None) -> OptimizeRequest:
    candidates = [document for document in found if is_request(document)]
    if named is not None:
        candidates = list(documents(named))
    if len(candidates) == 1:
        return request_of(candidates[0])
    if not candidates:
        raise YamlFileError(
            "no request found: add the body of POST /optimize as a YAML or JSON file,"
            " or name it with --request"
        )
    places = ", ".join(str(document.path) for document in candidates)
    raise YamlFileError(f"several requests found ({places}); choose one with --request")


async def _add(hub: EmbeddedHub, document: YamlDocument, obj: Object) -> str | None:
    kind = find(obj)
    label = f"{obj['kind']} {obj['metadata']['name']}"
    if kind not in _READ:
        return f"{document.path}: {label}: planning does not read this kind"
    try:
        await _create(hub, kind, obj)
    except ApiError as error:
        raise YamlFileError(f"{document.path}: {label}: {error}") from error
    return None


async def _create(hub: EmbeddedHub, kind: Kind, obj: Object) -> None:
    metadata, namespace = dict(obj["metadata"]), None
    if kind.namespaced:
        namespace = metadata.setdefault("namespace", "default")
        await _namespace(hub, namespace)
    for assigned in ("resourceVersion", "uid", "generation", "creationTimestamp"):
        metadata.pop(assigned, None)
    await hub.create(kind, {**obj, "metadata": metadata}, options=WriteOptions("Strict"))
    if obj.get("status"):
        await hub.patch(
            kind,
            metadata["name"],
            {"status": obj["status"]},
            namespace,
            subresource="status",
            options=WriteOptions("Strict"),
        )


async def _namespace(hub: EmbeddedHub, name: str) -> None:
    namespace = {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}
    try:
        await hub.create(NAMESPACE, namespace)
    except AlreadyExists:
        return
