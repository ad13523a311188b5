"""Objects that are listed as a hub lists them, and are checked as a hub checks them."""

from collections import defaultdict
from functools import cache

from dsf.api.crd.definitions import crds
from dsf.api.invalid_input import InvalidInput
from dsf.api.names import GROUP
from dsf.kube.errors import AlreadyExists, BadRequest
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, ObjectList
from dsf.kube.resources import write_strategy
from dsf.kube.resources.custom_resource_definitions import prepared, resources
from dsf.kube.resources.ocm import ocm_crd
from dsf.kube.resources.resource_catalog import Resource, selectable_fields
from dsf.kube.schema.json_values import accepted, copied
from dsf.kube.schema.pruning import UnknownField
from dsf.kube.selectors import field_selector, label_selector

_ASSIGNED = ("resourceVersion", "uid", "generation", "creationTimestamp")
"""What an API server assigns; objects that kubectl wrote to a file have that of another hub."""


class ListedObjects:
    """Objects of OCM's kinds and of the product's own; implements `dsf.kube.port.Lister`.

    `now`: when they were created, as RFC 3339 text.
    """

    def __init__(self, now: str) -> None:
        self._now = now
        self._objects: defaultdict[Kind, dict[tuple[str, str], Object]] = defaultdict(dict)

    def add(self, kind: Kind, obj: Object) -> tuple[UnknownField, ...]:
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

    def names(self, kind: Kind) -> frozenset[str]:
        """Return the names of the objects of a kind."""
        return frozenset(name for _, name in self._objects[kind])

    async def list(
        self,
        kind: Kind,
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
def known_resource(kind: Kind) -> Resource:
    """Return the resource of one of OCM's kinds, or of the product's own, without an API server."""
    if kind.group == GROUP:
        (crd,) = (crd for crd in crds() if crd["spec"]["names"]["plural"] == kind.plural)
    else:
        crd = ocm_crd(f"{kind.plural}.yaml")
    (found,) = (item for item in resources(prepared(crd)) if item.kind.version == kind.version)
    return found
