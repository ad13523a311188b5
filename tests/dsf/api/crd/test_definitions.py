"""The CRDs: the charts' files agree with the wire types, and refuse nonsense."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dsf.api.crd.definitions import crds
from dsf.api.crd.structural_schema import INT_OR_STRING
from optimizer.wire.placement_optimization import placement_optimization
from tests.repository import ROOT


def test_the_charts_ship_what_the_wire_types_say() -> None:
    shipped = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in ROOT.glob("charts/*/files/crds/*.yaml")
    }
    generated = {crd["metadata"]["name"]: crd for crd in crds()}
    assert shipped == generated, "run `make crds` and commit the result"


def test_dsf_carries_what_the_types_of_the_optimizer_say() -> None:
    assert crds()[-1] == placement_optimization(), "run `make crds` and commit the result"


for_each_crd = pytest.mark.parametrize(
    "schema",
    [crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()],
    ids=[crd["spec"]["names"]["kind"] for crd in crds()],
)


@for_each_crd
def test_every_field_is_typed(schema: dict[str, Any]) -> None:
    assert list(_untyped(schema)) == []


@for_each_crd
def test_every_field_is_described(schema: dict[str, Any]) -> None:
    """`kubectl explain` and the reference show what a field means."""
    assert list(_undescribed(schema)) == [".metadata"]


@for_each_crd
def test_metadata_says_nothing_that_the_api_server_refuses(schema: dict[str, Any]) -> None:
    """It allows only the type, and restrictions of `name` and `generateName`."""
    assert schema["properties"]["metadata"] == {"type": "object"}


def _undescribed(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from _undescribed(field, f"{path}.{name}")
    if "items" in schema:
        yield from _undescribed(schema["items"], f"{path}[]")


def _untyped(schema: dict, path: str = ""):  # type: ignore[no-untyped-def,type-arg]
    untyped = schema.keys().isdisjoint(
        {"type", INT_OR_STRING, "x-kubernetes-preserve-unknown-fields"}
    )
    if untyped:
        yield path
    for name, sub in schema.get("properties", {}).items():
        yield from _untyped(sub, f"{path}.{name}")
    if "items" in schema:
        yield from _untyped(schema["items"], f"{path}[]")
