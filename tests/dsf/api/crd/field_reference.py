"""Writes docs/reference/custom-resources.md from the CRDs.

Run `make references` after a change of a field.
"""

from collections.abc import Iterator
from typing import Any

from dsf.api.crd.definitions import CustomResourceDefinition, crds
from tests.repository import ROOT

PAGE = ROOT / "docs/reference/custom-resources.md"

_HEAD = """# Fields of the custom resources

A reference for people who write manifests, written from the CRDs by `make references`. A field
without "required" may be left out. `kubectl explain dynamicscorer.spec` tells the same on a hub. In
mode Full the scoring API's `/config` wins over `source` and `scoring`: see
[who decides](scoring-api.md#who-decides-full-or-none).
"""

_REQUIRED = "Required. "
"""How a description begins if a CEL rule, which has a better message, requires the field."""


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *(line for crd in crds() for line in _section(crd))))


def _section(crd: CustomResourceDefinition) -> Iterator[str]:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    yield f"## {crd['spec']['names']['kind']}\n\n{schema['description']}\n"
    for part in ("spec", "status"):
        if part not in schema["properties"]:
            continue
        yield f"### {crd['spec']['names']['kind']} {part}\n"
        yield "| field | type | required, default | allowed | meaning |\n|---|---|---|---|---|"
        yield from _rows(schema["properties"][part], f"{part}.")
        yield ""


def _rows(schema: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield _row(path, field, name in schema.get("required", []))
        if path == "status.conditions":
            continue  # Kubernetes' own fields
        yield from _rows(field, f"{path}.")
        yield from _rows(field.get("items", {}), f"{path}[].")


def _row(path: str, field: dict[str, Any], required: bool) -> str:
    meaning = field.get("description", "")
    if required or meaning.startswith(_REQUIRED):
        presence = "required"
    else:
        presence = f"`{field['default']}`" if "default" in field else ""
    cells = (
        f"`{path}`",
        field.get("type", "integer or string"),
        presence,
        _allowed(field),
        meaning.removeprefix(_REQUIRED),
    )
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def _allowed(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    limits = {
        "at least {}": field.get("minimum"),
        "at most {}": field.get("maximum"),
        "at most {} characters": field.get("maxLength"),
        "at most {} items": field.get("maxItems"),
    }
    return ", ".join(text.format(value) for text, value in limits.items() if value is not None)
