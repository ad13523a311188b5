"""The objects of files, listed as a hub lists them and checked by the same schemas."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from dsf.api.crd.definitions import crds
from dsf.api.names import GROUP
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.errors import AlreadyExists, ApiError, BadRequest
from dsf.kube.port import Object, ObjectList
from dsf.kube.resources import write_strategy
from dsf.kube.resources.custom_resource_definitions import prepared, resources
from dsf.kube.resources.ocm import ocm_crd
from dsf.kube.resources.resource_catalog import Resource, selectable_fields
from dsf.kube.schema.json_values import accepted, copied
from dsf.kube.schema.pruning import UnknownField
from dsf.kube.selectors import field_selector, label_selector
from dsf.kube.yaml_documents import YamlDocument, YamlFileError, documents
from dsf.placement import DEFAULT_SETS, SET_LABEL
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import REQUEST_FIELDS, field_problems

_ASSIGNED = ("resourceVersion", "uid", "generation", "creationTimestamp")
"""What an API server assigns; objects that kubectl wrote to a file have that of another hub."""


class ListedObjects:
    """Objects of OCM's kinds and of the product's own; implements `dsf.kube.port.Lister`.

    `now`: when they were created, as RFC 3339 text.
    """

    def __init__(self, now: str) -> None:
        self._now = now
        self._objects: defaultdict[kinds.Kind, dict[tuple[str, str], Object]] = defaultdict(dict)

    def add(self, kind: kinds.Kind, obj: Object) -> tuple[UnknownField, ...]:
        """Add an object as creates and writes of a status store it; return its unknown fields.

        Without a namespace it is in `default`. Raises AlreadyExists, BadRequest, Invalid.
        """
        resource = known_resource(kind)
        metadata = {key: item for key, item in obj["metadata"].items() if key not in _ASSIGNED}
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
        try:
            sent = accepted({**obj, "metadata": metadata})
        except TypeError as error:
            raise BadRequest(str(error)) from error
        found = write_strategy.decoded(resource, sent)
        name = found.obj["metadata"].get("name", "")
        new = write_strategy.created(resource, found.obj, name=name, uid="", now=self._now)
        write_strategy.check_created(resource, new)
        if sent.get("status"):
            new, old = write_strategy.with_status(new, found.obj), new
            write_strategy.check_status(resource, new, old)
        del new["metadata"]["uid"]
        key = (new["metadata"].get("namespace", ""), name)
        if key in self._objects[kind]:
            raise AlreadyExists(f'{kind.resource} "{name}" already exists')
        self._objects[kind][key] = new
        return found.unknown

    def names(self, kind: kinds.Kind) -> frozenset[str]:
        """Return the names of the objects of a kind."""
        return frozenset(name for _, name in self._objects[kind])

    async def list(
        self,
        kind: kinds.Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,  # noqa: ARG002 - all are in memory: the first page is the last
        continue_token: str = "",  # noqa: ARG002
    ) -> ObjectList:
        """Return all selected objects, by namespace and name; none of a kind that was not added."""
        chosen, tested = label_selector(labels), field_selector(fields)
        if isinstance(chosen, InvalidInput):
            raise BadRequest(chosen.message)
        if isinstance(tested, InvalidInput):
            raise BadRequest(tested.message)
        keys = sorted(key for key in self._objects[kind] if namespace in {None, key[0]})
        found = (self._objects[kind][key] for key in keys)
        selected = (
            copied(obj)
            for obj in found
            if chosen.matches(obj["metadata"].get("labels", {}))
            and (not tested.terms or tested.matches(selectable_fields(known_resource(kind), obj)))
        )
        return ObjectList(tuple(selected), resource_version="")


@cache
def known_resource(kind: kinds.Kind) -> Resource:
    """Return the resource of one of OCM's kinds, or of the product's own, without an API server."""
    if kind.group == GROUP:
        (crd,) = (crd for crd in crds() if crd["spec"]["names"]["plural"] == kind.plural)
    else:
        crd = ocm_crd(f"{kind.plural}.yaml")
    (found,) = (item for item in resources(prepared(crd)) if item.kind.version == kind.version)
    return found


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


_METADATA = ("metadata",)
_READ: dict[kinds.Kind, tuple[tuple[str, ...], ...]] = {
    kinds.ADD_ON_PLACEMENT_SCORE: (_METADATA, ("status",)),
    kinds.DYNAMIC_SCORER: (
        _METADATA,
        ("spec",),
        ("status", "scoreName"),
        ("status", "meaning"),
        ("status", "lastSyncedConfig"),
    ),
    kinds.MANAGED_CLUSTER: (_METADATA, ("status", "allocatable"), ("status", "clusterClaims")),
    kinds.MANAGED_CLUSTER_SET: (_METADATA, ("spec",)),
    kinds.MANAGED_CLUSTER_SET_BINDING: (_METADATA, ("spec",)),
    kinds.MANIFEST_WORK_REPLICA_SET: (
        _METADATA,
        ("spec", "placementRefs"),
        ("spec", "manifestWorkTemplate", "workload"),
    ),
    kinds.NODE_INVENTORY: (_METADATA, ("status",)),
    kinds.PLACEMENT: (_METADATA, ("spec",), ("status",)),
    kinds.PLACEMENT_BINDING: (_METADATA, ("placementRef",), ("subjects",)),
    kinds.PLACEMENT_DECISION: (_METADATA, ("status", "decisions")),
    kinds.POLICY: (_METADATA,),
}
"""The kinds that planning reads, and the parts of their objects that it reads."""

_NAMED_FIELDS = 5
"""Unknown fields that one line names."""


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """The objects of files, the request if there is one, and what was ignored."""

    hub: ListedObjects
    request: OptimizeRequest | None
    ignored: tuple[str, ...]


def read_object_files(paths: Iterable[Path], named: OptimizeRequest | None) -> ObjectFiles:
    """Read files and folders. Raises YamlFileError if one of them can't be used.

    Unless a request is `named`, it is the only document among them that is one. Cluster sets count
    as on a hub if any namespace has a ManagedClusterSetBinding, and not at all otherwise.
    """
    found = [document for path in paths for document in documents(path)]
    asked = named or _request([document for document in found if is_request(document)])
    read = [(document, list(objects(document))) for document in found if is_object(document)]
    bindings = [
        obj["metadata"]["name"]
        for _, items in read
        for obj in items
        if kinds.find(obj) == kinds.MANAGED_CLUSTER_SET_BINDING
    ]
    hub, ignored = ListedObjects(rfc3339(utc_now())), list[str]()
    for document, items in read:
        added = (_add(hub, document, obj, counts_sets=bool(bindings)) for obj in items)
        ignored += filter(None, added)
    if bindings:
        ignored += _bound_to_nothing(hub, bindings)
    ignored += _without_objects(found, named)
    return ObjectFiles(hub, asked, tuple(ignored))


def _without_objects(found: Iterable[YamlDocument], named: OptimizeRequest | None) -> Iterator[str]:
    for document in found:
        if is_request(document) and named and not is_object(document):
            yield f"{document.path}: the request, because --request says which"
        elif not is_request(document) and not is_object(document):
            yield f"{document.path}: neither a Kubernetes object nor a request"


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


def _add(
    hub: ListedObjects, document: YamlDocument, obj: Object, *, counts_sets: bool
) -> str | None:
    """Add an object; return what was ignored of it, None for nothing."""
    kind = kinds.find(obj)
    name = UntrustedName(obj["metadata"]["name"])
    label = f"{document.path}: {UntrustedName(obj['kind'])} {name}"
    if kind not in _READ:
        return f"{label}: plans do not use this kind"
    if kind == kinds.MANAGED_CLUSTER_SET and not counts_sets:
        return f"{label}: no ManagedClusterSetBinding in the files makes cluster sets count"
    try:
        unknown = hub.add(kind, _in_default_set(obj) if counts_sets else obj)
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


def _in_default_set(obj: Object) -> Object:
    """Return a managed cluster in a cluster set: OCM labels those that are in none."""
    labels = obj["metadata"].get("labels") or {}
    if (
        kinds.find(obj) != kinds.MANAGED_CLUSTER
        or not isinstance(labels, dict)
        or labels.get(SET_LABEL)
    ):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": {**labels, SET_LABEL: "default"}}}


def _bound_to_nothing(hub: ListedObjects, bindings: Iterable[str]) -> Iterator[str]:
    """Add the cluster sets of every hub; yield the bindings whose sets are neither in the files."""
    for name, spec in DEFAULT_SETS.items():
        with suppress(AlreadyExists):
            hub.add(kinds.MANAGED_CLUSTER_SET, {"metadata": {"name": name}, "spec": dict(spec)})
    existing = hub.names(kinds.MANAGED_CLUSTER_SET)
    for name in sorted(set(bindings) - existing):
        shown = UntrustedName(name)
        yield f"ManagedClusterSetBinding {shown}: the files have no ManagedClusterSet {shown}"
