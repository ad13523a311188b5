"""Objects for the contract: short builders, and two kinds that use what schemas offer."""

from typing import Any

from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, Kind
from dsf.kube.port import Kube, Object

GROUP = "contract.example.com"
WIDGET = Kind(GROUP, "v1", "Widget", "widgets")
GADGET = Kind(GROUP, "v1", "Gadget", "gadgets", namespaced=False)


def config_map(namespace: str, name: str = "settings", **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": {"colour": "blue"},
    }


def scorer(namespace: str, name: str = "latency", **spec: Any) -> Object:
    return {
        "apiVersion": DYNAMIC_SCORER.api_version,
        "kind": "DynamicScorer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"description": "d", "configURL": "http://scorer.example/config", **spec},
    }


def widget(namespace: str, name: str = "first", **spec: Any) -> Object:
    return {
        "apiVersion": WIDGET.api_version,
        "kind": "Widget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def gadget(name: str, **content: Any) -> Object:
    return {
        "apiVersion": GADGET.api_version,
        "kind": "Gadget",
        "metadata": {"name": name},
        **content,
    }


def owner(obj: Object, **more: Any) -> Object:
    """A reference to an owner."""
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }


async def names(kube: Kube, kind: Kind, namespace: str | None = None, **query: Any) -> list[str]:
    page = await kube.list(kind, namespace, **query)
    return [item["metadata"]["name"] for item in page.items]


async def is_gone(kube: Kube, name: str, namespace: str, kind: Kind = CONFIG_MAP) -> bool:
    return name not in await names(kube, kind, namespace)


def widget_definition() -> Object:
    """A kind with a status subresource, defaults, lists of every type, and rules."""
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10},
            "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "code": {"type": "string", "pattern": "^[a-z]{2}$"},
            "title": {"type": "string", "minLength": 2, "maxLength": 4},
            "until": {"type": "string", "format": "date-time"},
            "limit": {"x-kubernetes-int-or-string": True},
            "note": {"type": "string", "nullable": True},
            "nested": {
                "type": "object",
                "default": {},
                "properties": {"kept": {"type": "boolean", "default": True}},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "embedded": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "labels": {
                "type": "object",
                "maxProperties": 2,
                "additionalProperties": {"type": "string"},
            },
            "tags": {
                "type": "array",
                "maxItems": 3,
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
            },
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "number": {"type": "integer"}},
                },
            },
            "serial": {
                "type": "string",
                "maxLength": 10,
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "a serial never changes"}
                ],
            },
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.size) || !has(self.title) || self.size >= size(self.title)",
                "message": "the title must fit the size",
                "fieldPath": ".title",
            }
        ],
    }
    status = {
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["Good", "Bad"]},
            "seen": {"type": "integer", "format": "int64"},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.colour"}],
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
        },
    }
    return _definition(WIDGET, version)


def gadget_definition() -> Object:
    """A cluster-scoped kind without a status subresource."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": anything, "status": anything},
            }
        },
    }
    return _definition(GADGET, version)


def _definition(kind: Kind, version: Object) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [version],
        },
    }
