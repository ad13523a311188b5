"""Getting and listing objects."""

import pytest

from dsf.kube.errors import BadRequest, Gone, NotFound
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, Kind
from dsf.kube.port import Kube
from tests.dsf.kube.contract.objects import WIDGET, config_map, names, widget


async def test_what_does_not_exist_is_named(kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFound) as missing:
        await kube.get(DYNAMIC_SCORER, "x", namespace)
    resource = "dynamicscorers.dynamic-scoring.open-cluster-management.io"
    assert missing.value.message == f'{resource} "x" not found'
    assert missing.value.details == {
        "name": "x",
        "group": "dynamic-scoring.open-cluster-management.io",
        "kind": "dynamicscorers",
    }


async def test_core_kinds_are_named_without_a_group(kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFound) as missing:
        await kube.get(CONFIG_MAP, "x", namespace)
    assert missing.value.message == 'configmaps "x" not found'


async def test_other_versions_are_not_served(kube: Kube, namespace: str) -> None:
    other = Kind(DYNAMIC_SCORER.group, "v9", "DynamicScorer", "dynamicscorers")
    with pytest.raises(NotFound):
        await kube.list(other, namespace)


async def test_a_list_is_ordered_by_namespace_and_name(kube: Kube, namespace: str) -> None:
    for name in ("b", "a.x", "a", "a-x"):
        await kube.create(WIDGET, widget(namespace, name))
    assert await names(kube, WIDGET, namespace) == ["a", "a-x", "a.x", "b"]


async def test_a_list_names_its_version_and_its_items_their_types(
    kube: Kube, namespace: str
) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    page = await kube.list(WIDGET, namespace)
    assert int(page.resource_version) >= int(created["metadata"]["resourceVersion"])
    assert page.items == (created,)


async def test_a_list_of_all_namespaces(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace))
    found = await kube.list(CONFIG_MAP)
    assert namespace in {item["metadata"]["namespace"] for item in found.items}


async def test_an_empty_list_in_a_namespace_that_does_not_exist(kube: Kube) -> None:
    assert await names(kube, CONFIG_MAP, "nowhere-to-be-found") == []


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("tier=web", ["a", "b"]),
        ("tier==web,zone=east", ["a"]),
        ("tier!=web", ["c", "d"]),
        ("zone in (east, west)", ["a", "b"]),
        ("zone notin (east)", ["b", "c", "d"]),
        ("zone", ["a", "b"]),
        ("!zone", ["c", "d"]),
        ("tier in ()", []),
    ],
)
async def test_label_selectors(
    kube: Kube, namespace: str, selector: str, selected: list[str]
) -> None:
    labels = {
        "a": {"tier": "web", "zone": "east"},
        "b": {"tier": "web", "zone": "west"},
        "c": {"tier": "store"},
        "d": {},
    }
    for name, of_it in labels.items():
        await kube.create(CONFIG_MAP, config_map(namespace, name, labels=of_it))
    found = await names(kube, CONFIG_MAP, namespace, labels=selector)
    assert [name for name in found if name in labels] == selected


@pytest.mark.parametrize("selector", ["a b", "a in (", "=a", "a=b,", "a=!", "a/b/c"])
async def test_malformed_label_selectors_are_refused(
    kube: Kube, namespace: str, selector: str
) -> None:
    with pytest.raises(BadRequest):
        await kube.list(CONFIG_MAP, namespace, labels=selector)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b"]),
        ("spec.colour=blue", ["b"]),
        ("metadata.name=a,spec.colour=blue", []),
    ],
)
async def test_field_selectors(
    kube: Kube, namespace: str, selector: str, selected: list[str]
) -> None:
    await kube.create(WIDGET, widget(namespace, "a"))
    await kube.create(WIDGET, widget(namespace, "b", colour="blue"))
    assert await names(kube, WIDGET, namespace, fields=selector) == selected


async def test_a_field_selector_can_name_the_namespace(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace, "a"))
    assert await names(kube, WIDGET, fields=f"metadata.namespace={namespace}") == ["a"]


@pytest.mark.parametrize("selector", ["spec.size=1", "metadata.uid=a", "status.phase=Good"])
async def test_other_fields_can_not_be_selected(kube: Kube, namespace: str, selector: str) -> None:
    with pytest.raises(BadRequest, match="field label not supported"):
        await kube.list(WIDGET, namespace, fields=selector)


async def test_a_malformed_field_selector_is_refused(kube: Kube, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await kube.list(WIDGET, namespace, fields="metadata.name")


async def test_pages_follow_each_other(kube: Kube, namespace: str) -> None:
    for name in "abcde":
        await kube.create(WIDGET, widget(namespace, name))
    first = await kube.list(WIDGET, namespace, limit=2)
    assert [item["metadata"]["name"] for item in first.items] == ["a", "b"]
    assert first.remaining == 3
    rest = await kube.list(WIDGET, namespace, limit=3, continue_token=first.continue_token)
    assert [item["metadata"]["name"] for item in rest.items] == ["c", "d", "e"]
    assert rest.continue_token == ""


async def test_the_last_full_page_says_so(kube: Kube, namespace: str) -> None:
    for name in "ab":
        await kube.create(WIDGET, widget(namespace, name))
    page = await kube.list(WIDGET, namespace, limit=2)
    assert (len(page.items), page.continue_token, page.remaining) == (2, "", None)


async def test_all_pages_show_one_moment(kube: Kube, namespace: str) -> None:
    for name in "abc":
        await kube.create(WIDGET, widget(namespace, name))
    first = await kube.list(WIDGET, namespace, limit=1)
    await kube.delete(WIDGET, "b", namespace)
    await kube.create(WIDGET, widget(namespace, "bb"))
    await kube.patch(WIDGET, "c", {"spec": {"size": 1}}, namespace)
    rest = await kube.list(WIDGET, namespace, limit=5, continue_token=first.continue_token)
    assert [item["metadata"]["name"] for item in rest.items] == ["b", "c"]
    assert "size" not in rest.items[1]["spec"]
    assert rest.resource_version == first.resource_version


async def test_a_page_of_selected_objects_is_full(kube: Kube, namespace: str) -> None:
    for name in "abcd":
        obj = widget(namespace, name)
        obj["metadata"]["labels"] = {"odd": str(name in "ac").lower()}
        await kube.create(WIDGET, obj)
    page = await kube.list(WIDGET, namespace, labels="odd=true", limit=1)
    rest = await kube.list(
        WIDGET, namespace, labels="odd=true", limit=1, continue_token=page.continue_token
    )
    shown = [item["metadata"]["name"] for item in (*page.items, *rest.items)]
    assert shown == ["a", "c"]


@pytest.mark.parametrize("token", ["nonsense", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"])
async def test_a_malformed_continue_token_is_refused(
    kube: Kube, namespace: str, token: str
) -> None:
    with pytest.raises((BadRequest, Gone)):
        await kube.list(WIDGET, namespace, limit=1, continue_token=token)
