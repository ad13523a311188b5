"""The CRDs: the charts' files agree with the wire types, and refuse nonsense."""

import pytest
import yaml

from dsf.api.crd.definitions import crds
from tests.repository import ROOT


def test_the_charts_ship_what_the_wire_types_say() -> None:
    shipped = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in ROOT.glob("charts/*/files/crds/*.yaml")
    }
    generated = {crd["metadata"]["name"]: crd for crd in crds()}
    assert shipped == generated, "run `make crds` and commit the result"


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_every_field_is_typed_and_described(crd: dict[str, object]) -> None:
    assert list(_untyped(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])) == []  # type: ignore[index]


def _untyped(schema: dict, path: str = ""):  # type: ignore[no-untyped-def,type-arg]
    if "type" not in schema and "x-kubernetes-preserve-unknown-fields" not in schema:
        yield path
    for name, sub in schema.get("properties", {}).items():
        yield from _untyped(sub, f"{path}.{name}")
    if "items" in schema:
        yield from _untyped(schema["items"], f"{path}[]")
