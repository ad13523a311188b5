"""An embedded hub with the objects of files, validated by the same schemas as a real hub."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.api_server import WriteOptions
from dsf.kube.embedded.schema.pruning import UnknownField
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
    PLACEMENT_DECISION,
    POLICY,
    Kind,
    find,
)
from dsf.kube.port import Object
from optimizer.snapshot.files import is_object, is_request, objects, request_of
from optimizer.wire.request import OptimizeRequest

_METADATA = ("metadata",)
_READ: dict[Kind, tuple[tuple[str, ...], ...]] = {
    ADD_ON_PLACEMENT_SCORE: (_METADATA, ("status",)),
    DYNAMIC_SCORER: (
        _METADATA,
        ("spec",),
        ("status", "scoreName"),
        ("status", "meaning"),
        ("status", "lastSyncedConfig"),
    ),
    MANAGED_CLUSTER: (_METADATA, ("status", "allocatable"), ("status", "clusterClaims")),
    MANIFEST_WORK_REPLICA_SET: (_METADATA, ("spec", "placementRefs")),
    PLACEMENT: (_METADATA, ("spec",), ("status",)),
    PLACEMENT_BINDING: (_METADATA, ("placementRef",), ("subjects",)),
    PLACEMENT_DECISION: (_METADATA, ("status", "decisions")),
    POLICY: (_METADATA,),
}
"""The kinds that planning reads, and the parts of their objects that it reads."""

_NAMED_FIELDS = 5
"""Unknown fields that one line names."""


@dataclass(frozen=True, slots=True)
class OfflineHub:
    """A hub with the objects of files, the request if there is one, and what was ignored."""

    hub: EmbeddedHub
    request: OptimizeRequest | None
    ignored: tuple[str, ...]


async def read_offline_hub(paths: Iterable[Path], named: OptimizeRequest | None) -> OfflineHub:
    """Read files and folders into a hub. Raises YamlFileError if one of them can't be used.

    Unless a request is `named`, it is the only document among them that is one.
    """
    found = [document for path in paths for document in documents(path)]
    asked = named or _request([document for document in found if is_request(document)])
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


def read_request(path: Path) -> OptimizeRequest:
    """Return the request of a file. Raises YamlFileError."""
    found = _request(list(documents(path)))
    if found is None:
        raise YamlFileError(f"{path}: no request; it must be the body of POST /optimize")
    return found


def _request(candidates: Sequence[YamlDocument]) -> OptimizeRequest | None:
    if not candidates:
        return None
    if len(candidates) == 1:
        return request_of(candidates[0])
    places = ", ".join(str(document.path) for document in candidates)
    raise YamlFileError(f"several requests found ({places}); choose one with --request")


async def _add(hub: EmbeddedHub, document: YamlDocument, obj: Object) -> str | None:
    """Store an object; return what was ignored of it, None for nothing."""
    kind = find(obj)
    label = f"{document.path}: {obj['kind']} {obj['metadata']['name']}"
    if kind not in _READ:
        return f"{label}: plans do not use this kind"
    try:
        unknown = await _create(hub, kind, obj)
    except ApiError as error:
        raise YamlFileError(f"{label}: {error}") from error
    for found in unknown:
        if _may_be_read(found.path, obj, _READ[kind]):
            place = found.path.rpartition(".")[0] or obj["kind"]
            known = f"; {place} has {', '.join(found.known)}" if found.known else ""
            raise YamlFileError(f"{label}: {found}{known}")
    if not unknown:
        return None
    more = len(unknown) - _NAMED_FIELDS
    listed = ", ".join(map(str, unknown[:_NAMED_FIELDS])) + (f" and {more} more" * (more > 0))
    return f"{label}: {listed}, in parts that planning does not read"


def _may_be_read(path: str, obj: Object, read: tuple[tuple[str, ...], ...]) -> bool:
    """Tell whether a field is in a part that is read, or may be the misspelt name of one.

    It may be misspelt where the object lacks the part that is read at that place.
    """
    *place, _ = names = re.sub(r"\[\d+\]", "", path).split(".")
    for part in read:
        if names[: len(part)] == list(part):
            return True
        if len(part) > len(place) and place == list(part[: len(place)]):
            holder: object = obj
            for name in place:
                holder = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(holder, dict) and part[len(place)] not in holder:
                return True
    return False


async def _create(hub: EmbeddedHub, kind: Kind, obj: Object) -> list[UnknownField]:
    """Create an object with its status; return its unknown fields."""
    metadata, namespace = dict(obj["metadata"]), None
    if kind.namespaced:
        namespace = metadata.setdefault("namespace", "default")
        await _namespace(hub, namespace)
    for assigned in ("resourceVersion", "uid", "generation", "creationTimestamp"):
        metadata.pop(assigned, None)
    options = WriteOptions("Warn")
    await hub.create(kind, {**obj, "metadata": metadata}, options=options)
    if obj.get("status"):
        await hub.patch(
            kind,
            metadata["name"],
            {"status": obj["status"]},
            namespace,
            subresource="status",
        )
    return options.unknown_fields


async def _namespace(hub: EmbeddedHub, name: str) -> None:
    namespace = {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}
    try:
        await hub.create(NAMESPACE, namespace)
    except AlreadyExists:
        return
