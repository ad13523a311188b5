"""What the hub serves, kind by kind."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dsf.kube import name_syntax
from dsf.kube.embedded.schema.field_errors import ObjectFieldError
from dsf.kube.embedded.schema.object_metadata import NameCheck
from dsf.kube.embedded.schema.pruning import Schema
from dsf.kube.embedded.schema.schema_validation import SchemaValidator
from dsf.kube.embedded.schema.validation_rules import ValidationRules
from dsf.kube.errors import NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Object

PAGE_NOT_FOUND = "the server could not find the requested resource"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; its path is a JSONPath, or a function where that can't say it."""

    name: str
    type: str
    path: str | Callable[[Object], Any]
    priority: int = 0
    format: str = ""
    description: str = ""


def _as_it_is(obj: Object) -> Object:
    return obj


def _no_errors(_: Object, __: Object | None) -> list[ObjectFieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Resource:
    """One version of one kind, and how its objects behave.

    `prepare` completes an object that was written, `check` finds what schemas cannot say; it is
    given the new and, on an update, the old object. Where it `counts_generations`, every change
    outside metadata and status bumps `metadata.generation`. Some kinds `embed` other objects.
    """

    kind: Kind
    singular: str
    schema: Schema
    validator: SchemaValidator
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status_validator: SchemaValidator | None = None
    rules: ValidationRules | None = None
    columns: tuple[Column, ...] = ()
    custom: bool = True
    counts_generations: bool = True
    embeds: bool = False
    create_on_update: bool = False
    unconditional_update: bool = False
    selectable: tuple[str, ...] = ()
    name_check: NameCheck = name_syntax.dns_subdomain
    prepare: Callable[[Object], Object] = _as_it_is
    check: Callable[[Object, Object | None], Iterable[ObjectFieldError]] = _no_errors

    @property
    def has_status(self) -> bool:
        """Whether the status is written through its own subresource."""
        return self.status_validator is not None

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return f"{self.kind.kind}List"

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths that field selectors know."""
        scoped = ("metadata.namespace",) if self.kind.namespaced else ()
        return ("metadata.name", *scoped, *self.selectable)


class Catalog:
    """The resources that are served now."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def reset(self, resources: Iterable[Resource]) -> None:
        """Serve exactly these resources."""
        self._resources.clear()
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve a resource."""
        kind = resource.kind
        self._resources[kind.group, kind.version, kind.plural] = resource

    def withdraw(self, group: str, plural: str) -> None:
        """Serve no version of a resource any longer."""
        for key in [key for key in self._resources if (key[0], key[2]) == (group, plural)]:
            del self._resources[key]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource by its path, or None."""
        return self._resources.get((group, version, plural))

    def resource(self, kind: Kind) -> Resource:
        """Return the resource of a kind; NotFound where it is not served."""
        if found := self.find(kind.group, kind.version, kind.plural):
            return found
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
    """Return the values of an object that field selectors see, by their paths."""
    return {path: _text_at(obj, path) for path in resource.fields}


def _text_at(obj: Any, path: str) -> str:
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    if isinstance(obj, bool):
        return "true" if obj else "false"
    return "" if obj is None else str(obj)
