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


async def test_a_successor_is_another_object(kube: Kube, namespace: str) -> None:
    first = await kube.create(CONFIG_MAP, config_map(namespace))
    await kube.delete(CONFIG_MAP, "settings", namespace)
    second = await kube.create(CONFIG_MAP, config_map(namespace))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_another_uid_is_a_conflict(kube: Kube, namespace: str) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace))
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAP, "settings", namespace, uid=NOBODY)
    await kube.delete(CONFIG_MAP, "settings", namespace, uid=created["metadata"]["uid"])


async def test_another_version_is_a_conflict(kube: Kube, namespace: str) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace))
    changed = await kube.patch(CONFIG_MAP, "settings", {"data": {"a": "b"}}, namespace)
    old = created["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAP, "settings", namespace, resource_version=old)
    new = changed["metadata"]["resourceVersion"]
    await kube.delete(CONFIG_MAP, "settings", namespace, resource_version=new)


async def _kept(kube: Kube, namespace: str) -> Object:
    obj = widget(namespace)
    obj["metadata"]["finalizers"] = [KEEP]
    return await kube.create(WIDGET, obj)


async def test_a_finalizer_delays_the_deletion(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    found = await kube.get(WIDGET, "first", namespace)
    assert found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    assert found["metadata"]["generation"] == 2
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)
    with pytest.raises(NotFound):
        await kube.get(WIDGET, "first", namespace)


async def test_deleting_again_changes_nothing(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    marked = await kube.get(WIDGET, "first", namespace)
    await kube.delete(WIDGET, "first", namespace)
    assert await kube.get(WIDGET, "first", namespace) == marked
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": []}}, namespace)


async def test_the_last_finalizer_ends_it_by_an_update_too(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    found = await kube.get(WIDGET, "first", namespace)
    del found["metadata"]["finalizers"]
    await kube.update(WIDGET, found)
    assert await names(kube, WIDGET, namespace) == []


async def test_what_is_being_deleted_takes_no_new_finalizers(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    patch = {"metadata": {"finalizers": [KEEP, "contract.example.com/other"]}}
    with pytest.raises(Invalid, match=r"metadata\.finalizers: Forbidden: no new finalizers"):
        await kube.patch(WIDGET, "first", patch, namespace)
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)


async def test_what_is_being_deleted_can_still_be_written(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    patched = await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    assert patched["metadata"]["generation"] == 3
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)


async def test_the_name_is_not_free_before_the_end(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    await kube.delete(WIDGET, "first", namespace)
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await kube.create(WIDGET, widget(namespace))
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)


async def test_removing_finalizers_alone_deletes_nothing(kube: Kube, namespace: str) -> None:
    await _kept(kube, namespace)
    patched = await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)
    assert "finalizers" not in patched["metadata"]
    assert await names(kube, WIDGET, namespace) == ["first"]


async def _family(kube: Kube, namespace: str) -> None:
    parent = await kube.create(CONFIG_MAP, config_map(namespace, "parent"))
    owners = [owner(parent)]
    await kube.create(CONFIG_MAP, config_map(namespace, "child", ownerReferences=owners))


async def test_dependents_go_with_their_owner(kube: Kube, namespace: str) -> None:
    await _family(kube, namespace)
    await kube.delete(CONFIG_MAP, "parent", namespace)
    assert await eventually(lambda: is_gone(kube, "child", namespace))


async def test_dependents_of_dependents_go_as_well(kube: Kube, namespace: str) -> None:
    await _family(kube, namespace)
    child = await kube.get(CONFIG_MAP, "child", namespace)
    await kube.create(
        CONFIG_MAP, config_map(namespace, "grandchild", ownerReferences=[owner(child)])
    )
    await kube.delete(CONFIG_MAP, "parent", namespace)
    assert await eventually(lambda: is_gone(kube, "grandchild", namespace))


async def test_an_owner_that_never_existed_takes_its_dependent_along(
    kube: Kube, namespace: str
) -> None:
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": NOBODY}
    await kube.create(CONFIG_MAP, config_map(namespace, "child", ownerReferences=[absent]))
    assert await eventually(lambda: is_gone(kube, "child", namespace))


async def test_an_owner_is_known_by_its_uid(kube: Kube, namespace: str) -> None:
    parent = await kube.create(CONFIG_MAP, config_map(namespace, "parent"))
    other = {**owner(parent), "uid": NOBODY}
    await kube.create(CONFIG_MAP, config_map(namespace, "child", ownerReferences=[other]))
    assert await eventually(lambda: is_gone(kube, "child", namespace))


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


async def test_an_owner_of_another_namespace_counts_as_absent(kube: Kube, namespace: str) -> None:
    name = f"owner-of-{namespace}"
    stranger = await kube.create(CONFIG_MAP, config_map("default", name))
    child = config_map(namespace, "child", ownerReferences=[owner(stranger)])
    await kube.create(CONFIG_MAP, child)
    assert await eventually(lambda: is_gone(kube, "child", namespace))
    await kube.delete(CONFIG_MAP, name, "default")


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


async def test_an_owner_reference_is_complete(kube: Kube, namespace: str) -> None:
    incomplete = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": ""}]
    with pytest.raises(Invalid, match=r"metadata\.ownerReferences\.uid: .*must not be empty"):
        await kube.create(CONFIG_MAP, config_map(namespace, ownerReferences=incomplete))


async def test_at_most_one_owner_is_the_controller(kube: Kube, namespace: str) -> None:
    parent = await kube.create(CONFIG_MAP, config_map(namespace, "parent"))
    other = await kube.create(CONFIG_MAP, config_map(namespace, "other"))
    owners = [owner(parent, controller=True), owner(other, controller=True)]
    with pytest.raises(Invalid, match="Only one reference can have Controller set to true"):
        await kube.create(CONFIG_MAP, config_map(namespace, "child", ownerReferences=owners))


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
