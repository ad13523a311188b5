"""Labels, annotations and finalizers."""

import pytest

from dsf.kube.errors import BadRequest, Invalid
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Kube, Object
from tests.dsf.kube.contract.objects import WIDGET, config_map, widget


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"-a": "b"}}, "metadata.labels"),
        ({"labels": {"a/b/c": "d"}}, "metadata.labels"),
        ({"labels": {"/a": "b"}}, "metadata.labels"),
        ({"labels": {"a": "b c"}}, "metadata.labels"),
        ({"labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"labels": {"k" * 64: "x"}}, "metadata.labels"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * (256 * 1024)}}, "metadata.annotations"),
        ({"finalizers": ["not ok"]}, "metadata.finalizers"),
    ],
)
async def test_malformed_metadata_is_refused(
    kube: Kube, namespace: str, metadata: Object, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await kube.create(CONFIG_MAP, config_map(namespace, **metadata))
    causes = refused.value.details["causes"]
    assert all(cause["field"].startswith(field) for cause in causes)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"example.com/a": "", "B_c.d": "e-F"}},
        {"labels": {"a": "x" * 63}},
        {"annotations": {"example.com/Any": "text, of any form: \n ä"}},
        {"finalizers": ["example.com/keep"]},
    ],
)
async def test_well_formed_metadata_is_kept(kube: Kube, namespace: str, metadata: Object) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace, **metadata))
    assert {key: created["metadata"][key] for key in metadata} == metadata
    await kube.patch(CONFIG_MAP, "settings", {"metadata": {"finalizers": None}}, namespace)


@pytest.mark.parametrize(
    "metadata",
    [{"labels": {"a": 1}}, {"labels": ["a"]}, {"annotations": {"a": {}}}, {"finalizers": "a"}],
)
async def test_metadata_of_other_types_can_not_be_read(
    kube: Kube, namespace: str, metadata: Object
) -> None:
    for kind, obj in ((CONFIG_MAP, config_map(namespace)), (WIDGET, widget(namespace))):
        obj["metadata"] |= metadata
        with pytest.raises(BadRequest):
            await kube.create(kind, obj)


async def test_unknown_metadata_is_dropped(kube: Kube, namespace: str) -> None:
    obj = widget(namespace)
    obj["metadata"] |= {"colour": "blue", "clusterName": "x"}
    created = await kube.create(WIDGET, obj)
    assert not {"colour", "clusterName"} & set(created["metadata"])


async def test_metadata_is_validated_on_a_patch_too(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    with pytest.raises(Invalid, match=r"metadata\.labels"):
        await kube.patch(WIDGET, "first", {"metadata": {"labels": {"a": "b c"}}}, namespace)
    assert await kube.get(WIDGET, "first", namespace) == created
