"""A hub loaded from files."""

import json
from pathlib import Path

import pytest

from dsf.api.crd.definitions import crds
from dsf.kube.embedded import EmbeddedHub, YamlFileError, load
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DYNAMIC_SCORER,
    NAMESPACE,
)
from dsf.kube.port import Object
from tests.dsf.kube.contract.objects import (
    GADGET,
    WIDGET,
    config_map,
    gadget_definition,
    scorer,
    widget,
    widget_definition,
)

SCORE = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {name: latency, namespace: east}
status:
  validUntil: 2026-01-01T00:00:00Z
  scores: [{name: app01, value: 42}]
"""


def write(folder: Path, name: str, *documents: str | Object) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    texts = [item if isinstance(item, str) else json.dumps(item) for item in documents]
    file.write_text("\n---\n".join(texts))
    return file


def everything(hub: EmbeddedHub) -> list[Object]:
    """Return all objects without their resource versions, ordered by resource and key."""
    return [
        _without_version(collection.objects[key])
        for _, collection in sorted(hub.server.objects.store.collections())
        for key in sorted(collection.objects)
    ]


async def test_objects_come_with_their_status(tmp_path: Path) -> None:
    write(tmp_path, "score.yaml", SCORE)
    hub = EmbeddedHub()
    (loaded,) = load(hub, tmp_path)
    assert loaded["metadata"]["name"] == "latency"
    found = await hub.get(ADD_ON_PLACEMENT_SCORE, "latency", "east")
    assert found["status"] == {
        "validUntil": "2026-01-01T00:00:00Z",
        "scores": [{"name": "app01", "value": 42}],
    }
    assert found["metadata"]["uid"]


async def test_namespaces_that_no_file_defines_are_made(tmp_path: Path) -> None:
    hub = EmbeddedHub()
    load(hub, write(tmp_path, "score.yaml", SCORE))
    assert (await hub.get(NAMESPACE, "east"))["status"] == {"phase": "Active"}


async def test_definitions_and_namespaces_come_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        "a.yaml",
        widget("east"),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            **{
                key: value
                for key, value in config_map("east").items()
                if key in {"metadata", "data"}
            },
        },
    )
    named = {"metadata": {"name": "east", "labels": {"a": "b"}}}
    write(tmp_path, "z/b.yml", {"apiVersion": "v1", "kind": "Namespace", **named})
    write(tmp_path, "z/c.json", widget_definition())
    hub = EmbeddedHub()
    load(hub, tmp_path)
    assert await hub.get(WIDGET, "first", "east")
    assert (await hub.get(NAMESPACE, "east"))["metadata"]["labels"]["a"] == "b"


async def test_lists_are_unfolded(tmp_path: Path) -> None:
    items = [config_map("n", "a"), config_map("n", "b")]
    file = write(tmp_path, "a.json", {"apiVersion": "v1", "kind": "List", "items": items})
    hub = EmbeddedHub()
    assert [obj["metadata"]["name"] for obj in load(hub, file)] == ["a", "b"]


async def test_the_hubs_own_definitions_may_be_given_again(tmp_path: Path) -> None:
    for number, crd in enumerate(crds()):
        write(tmp_path, f"{number}.yaml", crd)
    hub = EmbeddedHub()
    assert len(load(hub, tmp_path)) == len(crds())
    await hub.create(NAMESPACE, {"metadata": {"name": "n"}})
    assert await hub.create(DYNAMIC_SCORER, scorer("n"))


async def test_owners_outside_the_folder_take_nothing_along(tmp_path: Path) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
    write(tmp_path, "a.yaml", config_map("n", ownerReferences=[reference]))
    hub = EmbeddedHub()
    load(hub, tmp_path)
    assert await hub.get(CONFIG_MAP, "settings", "n")


PROBLEMS: list[tuple[str, str, str]] = [
    ("a.yaml", "a: [", "a.yaml, line 1"),
    ("a.yaml", "a: 1\na: 2\n", "a.yaml, line 2: the key 'a' occurs twice"),
    ("a.yaml", "1: 2\n", "the key 1 is not text"),
    ("a.json", "{", "a.json: "),
    ("a.json", '{"a": 1, "a": 2}', "the key 'a' occurs twice"),
    ("a.json", '{"a": NaN}', "NaN is not a JSON value"),
    ("a.yaml", "text", "document 1: not a Kubernetes object: it needs apiVersion and kind"),
    ("a.yaml", "---\n---\nkind: X\n", "document 2: not a Kubernetes object"),
    ("a.yaml", "apiVersion: v1\nkind: Service\n", "Service in v1 is not served; served are"),
    ("a.yaml", SCORE.replace("42", "101"), "status.scores[0].value: Invalid value: 101"),
    ("a.yaml", SCORE.replace("scores:", "score:"), 'unknown field "status.score"; status has'),
    ("a.yaml", SCORE.replace(", namespace: east", ""), "metadata.namespace is missing"),
    ("a.yaml", SCORE.replace("name: latency, ", ""), "name or generateName is required"),
    ("a.yaml", SCORE.replace("latency", "La Tency"), "metadata.name: Invalid value"),
    (
        "a.yaml",
        SCORE + "---\n" + SCORE,
        'addonplacementscores.cluster.open-cluster-management.io "latency" already exists',
    ),
    ("a.yaml", SCORE.replace("42", "!!binary aGk="), "document 1: bytes is not a JSON value"),
    ("a.yaml", SCORE.replace("42", ".nan"), "nan is not a JSON number"),
]


@pytest.mark.parametrize(("name", "text", "problem"), PROBLEMS)
async def test_a_problem_names_its_place_and_nothing_is_written(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    write(tmp_path, "0-good.yaml", config_map("n"), gadget_definition())
    file = write(tmp_path, name, text)
    hub = EmbeddedHub()
    before = await hub.list(CUSTOM_RESOURCE_DEFINITION)
    initial = [obj["metadata"]["name"] for obj in everything(hub)]
    with pytest.raises(YamlFileError) as refused:
        load(hub, tmp_path)
    assert problem in str(refused.value)
    assert str(refused.value).startswith(str(file))
    assert "\n" not in str(refused.value)
    assert [obj["metadata"]["name"] for obj in everything(hub)] == initial
    assert await hub.list(CUSTOM_RESOURCE_DEFINITION) == before
    assert hub.server.catalog.by_kind(GADGET.api_version, GADGET.kind) is None


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(YamlFileError, match=r"none\.yaml: No such file"):
        load(EmbeddedHub(), tmp_path / "none.yaml")


async def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "lost.yaml").symlink_to(tmp_path / "gone")
    with pytest.raises(YamlFileError, match=r"lost\.yaml: No such file"):
        load(EmbeddedHub(), tmp_path)


async def test_a_binary_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(YamlFileError, match=r"a\.yaml"):
        load(EmbeddedHub(), tmp_path)


async def test_what_a_hub_serves_can_be_loaded(tmp_path: Path) -> None:
    hub = EmbeddedHub()
    await hub.create(CUSTOM_RESOURCE_DEFINITION, widget_definition())
    await hub.create(NAMESPACE, {"metadata": {"name": "n"}})
    parent = await hub.create(CONFIG_MAP, config_map("n", "parent"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent"}
    owner["uid"] = parent["metadata"]["uid"]
    obj = widget("n", size=3, code="ab", note=None)
    obj["metadata"] |= {"ownerReferences": [owner], "finalizers": ["example.com/keep"]}
    await hub.create(WIDGET, obj)
    await hub.patch(WIDGET, "first", {"status": {"seen": 7}}, "n", subresource="status")
    await hub.delete(WIDGET, "first", "n")
    for number, found in enumerate(everything(hub)):
        write(tmp_path, f"{number}.yaml", found)
    other = EmbeddedHub()
    load(other, tmp_path)
    assert everything(other) == everything(hub)


def _without_version(obj: Object) -> Object:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": metadata}
