"""Deleting objects: preconditions, finalizers, owners, namespaces."""

import pytest

from dsf.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from dsf.kube.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from dsf.kube.port import Kube, Object
from tests.dsf.kube.contract.objects import (
    GADGET,
    WIDGET,
    config_map,
    gadget,
    is_gone,
    names,
    owner,
    widget,
)
from tests.eventually import eventually

KEEP = "contract.example.com/keep"
NOBODY = "00000000-0000-0000-0000-000000000000"


async def test_what_is_deleted_is_gone(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace))
    await kube.delete(CONFIG_MAP, "settings", namespace)
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAP, "settings", namespace)
    with pytest.raises(NotFound):
        await kube.delete(CONFIG_MAP, "settings", namespace)


async def test_preconditions_name_an_object_and_its_version(kube: Kube, namespace: str) -> None:
    first = await kube.create(CONFIG_MAP, config_map(namespace))
    await kube.delete(CONFIG_MAP, "settings", namespace, uid=first["metadata"]["uid"])
    second = await kube.create(CONFIG_MAP, config_map(namespace))
    changed = await kube.patch(CONFIG_MAP, "settings", {"data": {"a": "b"}}, namespace)
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAP, "settings", namespace, uid=first["metadata"]["uid"])
    old, new = (obj["metadata"]["resourceVersion"] for obj in (second, changed))
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAP, "settings", namespace, resource_version=old)
    await kube.delete(CONFIG_MAP, "settings", namespace, resource_version=new)


async def _kept(kube: Kube, namespace: str) -> Object:
    obj = widget(namespace)
    obj["metadata"]["finalizers"] = [KEEP]
    return await kube.create(WIDGET, obj)


async def test_a_finalizer_delays_the_deletion(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    marked = await kube.get(WIDGET, "first", namespace)
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    await kube.delete(WIDGET, "first", namespace)
    assert await kube.get(WIDGET, "first", namespace) == marked
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await kube.create(WIDGET, widget(namespace))
    more = {"metadata": {"finalizers": [KEEP, "contract.example.com/other"]}}
    with pytest.raises(Invalid, match=r"metadata\.finalizers: Forbidden: no new finalizers"):
        await kube.patch(WIDGET, "first", more, namespace)
    patched = await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    assert patched["metadata"]["generation"] == 3
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)
    with pytest.raises(NotFound):
        await kube.get(WIDGET, "first", namespace)


async def test_removing_finalizers_alone_deletes_nothing(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    patched = await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)
    assert "finalizers" not in patched["metadata"]
    assert await names(kube, WIDGET, namespace) == ["first"]


async def test_the_last_finalizer_ends_it_by_an_update_too(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    found = await kube.get(WIDGET, "first", namespace)
    del found["metadata"]["finalizers"]
    await kube.update(WIDGET, found)
    assert await names(kube, WIDGET, namespace) == []


async def test_dependents_and_theirs_go_with_their_owner(kube: Kube, namespace: str) -> None:
    parent = await kube.create(CONFIG_MAP, config_map(namespace, "parent"))
    child = await kube.create(
        CONFIG_MAP, config_map(namespace, "child", ownerReferences=[owner(parent)])
    )
    await kube.create(
        CONFIG_MAP, config_map(namespace, "grandchild", ownerReferences=[owner(child)])
    )
    await kube.delete(CONFIG_MAP, "parent", namespace)
    assert await eventually(lambda: is_gone(kube, "grandchild", namespace))
    assert await is_gone(kube, "child", namespace)


@pytest.mark.parametrize("case", ["absent", "of another uid", "in another namespace"])
async def test_an_owner_that_does_not_exist_takes_its_dependent_along(
    kube: Kube, namespace: str, case: str
) -> None:
    home = "default" if case == "in another namespace" else namespace
    obj = await kube.create(CONFIG_MAP, config_map(home, f"owner-of-{namespace}"))
    reference = owner(obj)
    if case == "absent":
        await kube.delete(CONFIG_MAP, reference["name"], home)
    if case == "of another uid":
        reference["uid"] = NOBODY
    await kube.create(CONFIG_MAP, config_map(namespace, "child", ownerReferences=[reference]))
    assert await eventually(lambda: is_gone(kube, "child", namespace))
    if case == "in another namespace":
        await kube.delete(CONFIG_MAP, reference["name"], home)


async def test_one_owner_is_enough_to_stay(kube: Kube, namespace: str) -> None:
    father = await kube.create(CONFIG_MAP, config_map(namespace, "father"))
    mother = await kube.create(CONFIG_MAP, config_map(namespace, "mother"))
    owners = [owner(father), owner(mother)]
    await kube.create(CONFIG_MAP, config_map(namespace, "child", ownerReferences=owners))
    await kube.delete(CONFIG_MAP, "father", namespace)

    async def only_the_mother_is_left() -> bool:
        child = await kube.get(CONFIG_MAP, "child", namespace)
        return [o["name"] for o in child["metadata"]["ownerReferences"]] == ["mother"]

    assert await eventually(only_the_mother_is_left)


async def test_a_cluster_scoped_owner_may_own_what_is_in_a_namespace(
    kube: Kube, namespace: str
) -> None:
    name = f"gadget-{namespace}"
    parent = await kube.create(GADGET, gadget(name))
    child = config_map(namespace, "child", ownerReferences=[owner(parent)])
    await kube.create(CONFIG_MAP, child)
    assert "child" in await names(kube, CONFIG_MAP, namespace)
    await kube.delete(GADGET, name)
    assert await eventually(lambda: is_gone(kube, "child", namespace))


REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": NOBODY}


@pytest.mark.parametrize(
    ("references", "problem"),
    [
        ([{**REFERENCE, "uid": ""}], r"metadata\.ownerReferences\.uid: .*must not be empty"),
        (
            [
                {**REFERENCE, "controller": True},
                {**REFERENCE, "name": "other", "uid": NOBODY[:-1] + "1", "controller": True},
            ],
            "Only one reference can have Controller set to true",
        ),
    ],
)
async def test_malformed_owner_references_are_refused(
    kube: Kube, namespace: str, references: list[Object], problem: str
) -> None:
    with pytest.raises(Invalid, match=problem):
        await kube.create(CONFIG_MAP, config_map(namespace, ownerReferences=references))


async def test_a_namespace_goes_with_everything_in_it(kube: Kube) -> None:
    created = await kube.create(NAMESPACE, {"metadata": {"generateName": "contract-"}})
    name = created["metadata"]["name"]
    await kube.create(WIDGET, widget(name))
    await kube.delete(NAMESPACE, name)

    async def gone() -> bool:
        return name not in await names(kube, NAMESPACE)

    assert await eventually(gone)
    assert await names(kube, WIDGET, name) == []


async def test_a_terminating_namespace_waits_for_finalizers_and_takes_nothing_new(
    kube: Kube,
) -> None:
    created = await kube.create(NAMESPACE, {"metadata": {"generateName": "contract-"}})
    name = created["metadata"]["name"]
    await _kept(kube, name)
    await kube.delete(NAMESPACE, name)
    found = await kube.get(NAMESPACE, name)
    assert found["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="because it is being terminated"):
        await kube.create(CONFIG_MAP, config_map(name, "late"))

    async def widget_is_being_deleted() -> bool:
        kept = await kube.get(WIDGET, "first", name)
        return "deletionTimestamp" in kept["metadata"]

    async def gone() -> bool:
        return name not in await names(kube, NAMESPACE)

    assert await eventually(widget_is_being_deleted)
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, name)
    assert await eventually(gone)


async def test_the_default_namespace_stays(kube: Kube) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        await kube.delete(NAMESPACE, "default")


async def test_a_definition_goes_with_its_objects(
    kube: Kube, namespace: str, installed: set[str]
) -> None:
    installed.clear()  # the next test creates the definition again
    name = f"gadget-{namespace}"
    await kube.create(GADGET, gadget(name))
    await kube.delete(CUSTOM_RESOURCE_DEFINITION, GADGET.resource)

    async def not_served() -> bool:
        try:
            await kube.get(GADGET, name)
        except NotFound as error:
            return name not in error.message
        return False

    assert await eventually(not_served)
