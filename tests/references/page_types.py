"""Prints the schemas of the optimizer's OpenAPI document, from which the page's types are made.

`make types` reads them with json-schema-to-typescript. What is no type is left out: a title would
become a type of its own.
"""

import json
import sys
from typing import Any

from dsf.kube.embedded.hub import EmbeddedHub
from optimizer.api.app import create_app
from optimizer.service.optimizer import Optimizer

_NO_TYPE = ("title", "default", "examples", "pattern")


def schemas() -> dict[str, Any]:
    """Return a JSON schema that defines each component of the OpenAPI document."""
    app = create_app(Optimizer(EmbeddedHub(), now=lambda: "2026-01-01T00:00:00Z"))
    text = json.dumps(app.openapi()["components"]["schemas"])
    components = json.loads(text.replace("#/components/schemas/", "#/$defs/"))
    return {"title": "Components", "type": "object", "$defs": _types(components)}


def _types(schema: Any) -> Any:
    match schema:
        case dict():
            return {
                key: {name: _types(item) for name, item in value.items()}
                if key == "properties"
                else _types(value)
                for key, value in schema.items()
                if key not in _NO_TYPE
            }
        case list():
            return [_types(item) for item in schema]
        case _:
            return schema


if __name__ == "__main__":
    json.dump(schemas(), sys.stdout, indent=1)
