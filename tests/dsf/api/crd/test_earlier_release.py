"""The CRDs have every field of the earlier release, and accept what it accepted."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dsf.api.crd.definitions import crds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, NAMESPACE, PLACEMENT_PLAN
from tests.earlier_release import charts

Schema = dict[str, Any]

KINDS = {kind.kind: kind for kind in (DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, PLACEMENT_PLAN)}
TEXTS = {"description", "x-kubernetes-validations"}
"""What may differ: prose, and the rules, which the objects with every field try."""
UPPER = {"maxLength", "maxItems", "maxProperties", "maximum"}
LOWER = {"minLength", "minItems", "minProperties", "minimum"}
INSIDE = {"properties", "items", "additionalProperties"}
_CHOICE = re.compile(r"\(\?i\)\^\(([\w|]+)\)\$")
UNREACHABLE = {(".spec.scoring.params", "maxProperties")}
"""0.1.0 dropped all but two properties, so that no object has more."""


@pytest.mark.parametrize("crd", charts.crds(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_each_field_still_accepts_what_it_accepted(crd: dict[str, Any]) -> None:
    [today] = [new for new in crds() if new["metadata"]["name"] == crd["metadata"]["name"]]
    assert {**crd["spec"], "versions": None} == {**today["spec"], "versions": None}
    served = {version["name"]: version for version in today["spec"]["versions"]}
    for version in crd["spec"]["versions"]:
        new = served[version["name"]]
        assert (new["served"], new["storage"]) == (True, version["storage"])
        schemas = (one["schema"]["openAPIV3Schema"] for one in (version, new))
        assert list(refusals(*schemas)) == []


def refusals(old: Schema, new: Schema | None, path: str = "") -> Iterator[str]:
    """The fields that are gone, or accept less than before."""
    if new is None:
        yield f"{path} is gone"
        return
    for key in sorted({*old, *new} - TEXTS - INSIDE):
        if (path, key) not in UNREACHABLE and not accepts(key, old.get(key), new.get(key)):
            yield f"{path}: {key} was {old.get(key)}, and is {new.get(key)}"
    for name, field in old.get("properties", {}).items():
        yield from refusals(field, new.get("properties", {}).get(name), f"{path}.{name}")
    for inside in INSIDE - {"properties"}:
        if inside in old:
            yield from refusals(old[inside], new.get(inside), f"{path}[]")


def accepts(key: str, old: Any, new: Any) -> bool:
    """Whether a constraint accepts all that it accepted."""
    if old == new:
        return True
    if key == "required":
        return set(new or ()) <= set(old or ())
    if key == "enum":
        return new is None or (old is not None and set(old) <= set(new))
    if key == "pattern":
        ours, theirs = map(_CHOICE.fullmatch, (new or "", old or ""))
        return bool(ours and theirs and set(theirs[1].split("|")) <= set(ours[1].split("|")))
    if key in UPPER | LOWER:
        return new is None or (old is not None and (new > old) == (key in UPPER))
    return key == "x-kubernetes-preserve-unknown-fields" and new is True


@pytest.mark.parametrize(
    ("key", "old", "new", "same"),
    [
        ("type", "integer", "number", False),
        ("pattern", "^a$", "^b$", False),
        ("pattern", "(?i)^(a|b)$", "(?i)^(a|c|b)$", True),
        ("pattern", "(?i)^(a|b)$", "(?i)^(a|c)$", False),
        ("default", 1, None, False),
        ("maximum", 5, 4, False),
        ("maximum", 5, 6, True),
        ("minLength", 1, 2, False),
        ("minLength", None, 1, False),
        ("minLength", 1, None, True),
        ("enum", ["a"], ["a", "b"], True),
        ("enum", ["a", "b"], ["a"], False),
        ("required", ["a"], [], True),
        ("required", None, ["a"], False),
    ],
)
def test_what_accepts_less_is_noticed(key: str, old: object, new: object, same: bool) -> None:
    schemas = [{} if value is None else {key: value} for value in (old, new)]
    assert (list(refusals(*schemas)) == []) == same
    assert list(refusals({"properties": {"a": {}}}, {"properties": {}})) == [".a is gone"]


async def test_objects_with_every_field_are_stored_as_before() -> None:
    """tests/real_hub/charts stores them by the CRDs of 0.1.0, and upgrades those."""
    objects = charts.objects()
    assert {*fields(*objects)} >= {path for crd in charts.crds() for path in declared(crd)}
    hub = EmbeddedHub()
    for obj in objects:
        assert await stored(hub, obj) == {"spec": obj["spec"], **status_of(obj)}


async def stored(hub: EmbeddedHub, obj: dict[str, Any]) -> dict[str, Any]:
    """What becomes of an object's spec and status."""
    kind, metadata = KINDS[obj["kind"]], obj["metadata"]
    place = metadata["namespace"]
    if place not in {one["metadata"]["name"] for one in (await hub.list(NAMESPACE)).items}:
        await hub.create(NAMESPACE, {"metadata": {"name": place}})
    kept = await hub.create(kind, obj)
    if "status" in obj:
        status = {"status": obj["status"]}
        kept = await hub.patch(kind, metadata["name"], status, place, subresource="status")
    return {part: kept[part] for part in ("spec", "status") if part in kept}


def status_of(obj: dict[str, Any]) -> dict[str, Any]:
    """The status as a part of an object, or no part."""
    return {"status": obj["status"]} if "status" in obj else {}


def fields(*objects: dict[str, Any]) -> Iterator[str]:
    """The fields of objects, by kind and path."""
    for obj in objects:
        for part in ("spec", "status"):
            yield from paths(obj.get(part), f"{obj['kind']}.{part}")


def paths(value: Any, path: str) -> Iterator[str]:
    """The paths in a JSON value."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{path}[]")


def declared(crd: dict[str, Any]) -> Iterator[str]:
    """The fields of a CRD, by kind and path."""
    [version] = crd["spec"]["versions"]
    parts = version["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        yield from properties(parts[part], f"{crd['spec']['names']['kind']}.{part}")


def properties(schema: Schema, path: str) -> Iterator[str]:
    """The paths that a schema names."""
    yield path
    for name, field in schema.get("properties", {}).items():
        yield from properties(field, f"{path}.{name}")
    if "items" in schema:
        yield from properties(schema["items"], f"{path}[]")
