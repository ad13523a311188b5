"""The rights that the charts grant, and the rights that were used, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..harness.api import Object

FORBIDDEN = 403


class Right(NamedTuple):
    """A verb on a resource (``plural`` or ``plural/subresource``) of an API group."""

    group: str
    resource: str
    verb: str


def granted(roles: Iterable[Object]) -> set[Right]:
    """The rights in the rules of roles; limits to names or namespaces are ignored."""
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(events: Iterable[Object]) -> set[Right]:
    """The rights that a user has used, from audit events; discovery needs none."""
    return {right_of(event["objectRef"], event["verb"]) for event in resource_events(events)}


def refused(events: Iterable[Object]) -> list[Object]:
    """The audit events of requests that were answered 403."""
    return [event for event in events if event["responseStatus"]["code"] == FORBIDDEN]


def resource_events(events: Iterable[Object]) -> Iterator[Object]:
    """The audit events that are about objects of a kind."""
    return (event for event in events if "resource" in event.get("objectRef", {}))


def right_of(reference: Object, verb: str) -> Right:
    """The right that a request needs."""
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
    return Right(reference.get("apiGroup", ""), resource, verb)
