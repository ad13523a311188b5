"""The resources that the hub serves, one per version of a kind."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsf.api import name_syntax
from dsf.kube.errors import NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.schema.field_errors import ObjectFieldError
from dsf.kube.schema.object_metadata import NameCheck
from dsf.kube.schema.pruning import Schema
from dsf.kube.schema.schema_validation import SchemaValidator

if TYPE_CHECKING:
    from dsf.kube.schema.validation_rules import ValidationRules

PAGE_NOT_FOUND = "the server could not find the requested resource"


@dataclass(frozen=True, slots=True)
class Column:
    """A `kubectl get` column; `path` is a JSONPath, or a function if no JSONPath can express it."""

    name: str
    type: str
    path: str | Callable[[Object], Any]
    priority: int = 0
    format: str = ""
    description: str = ""


AGE = Column("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One version of one kind, and how writes of its objects behave.

    `prepare` completes a written object. `check` returns errors that no schema can express, from
    the new and, on an update, the old object. With `counts_generations`, every change outside
    metadata and status increments `metadata.generation`. `embeds`: objects contain other objects.
    `review` makes a kind a question: a create returns its status, and nothing is stored.
    """

    kind: Kind
    singular: str
    schema: Schema
    validator: SchemaValidator
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status_validator: SchemaValidator | None = None
    rules: "ValidationRules | None" = None
    columns: tuple[Column, ...] = ()
    custom: bool = True
    counts_generations: bool = True
    embeds: bool = False
    create_on_update: bool = False
    unconditional_update: bool = False
    selectable: tuple[str, ...] = ()
    name_check: NameCheck = name_syntax.dns_subdomain
    prepare: Callable[[Object], Object] = lambda obj: obj
    check: Callable[[Object, Object | None], Iterable[ObjectFieldError]] = (
        lambda new, old: ()  # noqa: ARG005 - the schema says everything
    )
    review: Callable[[Object], Object] | None = None

    @property
    def has_status(self) -> bool:
        """Whether the kind has a status subresource."""
        return self.status_validator is not None

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths that field selectors support."""
        scoped = ("metadata.namespace",) if self.kind.namespaced else ()
        return ("metadata.name", *scoped, *self.selectable)


class Catalog:
    """The resources that are currently served."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve a resource."""
        kind = resource.kind
        self._resources[kind.group, kind.version, kind.plural] = resource

    def withdraw(self, group: str, plural: str) -> None:
        """Stop serving all versions of a resource."""
        for key in [key for key in self._resources if (key[0], key[2]) == (group, plural)]:
            del self._resources[key]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource by its path, or None."""
        return self._resources.get((group, version, plural))

    def resource(self, kind: Kind) -> Resource:
        """Return the resource of a kind; raises NotFound if it is not served."""
        if resource := self.find(kind.group, kind.version, kind.plural):
            return resource
        served = sorted({f"{r.kind.plural}.{r.kind.group}".rstrip(".") for r in self.all()})
        hint = f"{kind.resource} {kind.version} is not served; served are {', '.join(served)}"
        raise NotFound(f"{PAGE_NOT_FOUND} ({hint})")

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return a resource by the `apiVersion` and `kind` of its objects, or None."""
        matching = (
            r for r in self.all() if (r.kind.api_version, r.kind.kind) == (api_version, kind)
        )
        return next(matching, None)

    def of(self, resource: str) -> Resource | None:
        """Return one version of a qualified resource, or None."""
        return next((r for r in self.all() if r.kind.resource == resource), None)

    def all(self) -> list[Resource]:
        """Return all resources in the order in which they were added."""
        return list(self._resources.values())


def selectable_fields(resource: Resource, obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of an object that field selectors can test, by path."""
    return {path: _text_at(obj, path) for path in resource.fields}


def _text_at(obj: Any, path: str) -> str:
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    if isinstance(obj, bool):
        return "true" if obj else "false"
    return "" if obj is None else str(obj)
