"""Creating objects."""

import re

import pytest

from dsf.kube.errors import AlreadyExists, ApiError, BadRequest, Invalid, NotFound
from dsf.kube.kinds import CLUSTER_CLAIM, CONFIG_MAP, DYNAMIC_SCORER, NAMESPACE, SECRET, Kind
from dsf.kube.port import Kube, Object
from tests.dsf.kube.contract.objects import (
    GADGET,
    WIDGET,
    config_map,
    gadget,
    names,
    scorer,
    widget,
)


async def test_the_server_completes_the_metadata(kube: Kube, namespace: str) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace))
    metadata = created["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("settings", namespace)
    assert metadata["uid"]
    assert metadata["resourceVersion"].isdigit()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])


async def test_what_was_created_can_be_read(kube: Kube, namespace: str) -> None:
    created = await kube.create(DYNAMIC_SCORER, scorer(namespace))
    assert await kube.get(DYNAMIC_SCORER, "latency", namespace) == created


async def test_what_only_the_server_sets_is_not_taken_from_the_caller(
    kube: Kube, namespace: str
) -> None:
    forged = {
        "uid": "00000000-0000-0000-0000-000000000000",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "generation": 7,
    }
    obj = scorer(namespace)
    obj["metadata"] |= forged
    metadata = (await kube.create(DYNAMIC_SCORER, obj))["metadata"]
    assert metadata["uid"] != forged["uid"]
    assert metadata["creationTimestamp"] != forged["creationTimestamp"]
    assert metadata["generation"] == 1
    assert "deletionTimestamp" not in metadata


async def test_a_name_is_taken_once(kube: Kube, namespace: str) -> None:
    await kube.create(DYNAMIC_SCORER, scorer(namespace))
    with pytest.raises(AlreadyExists) as refused:
        await kube.create(DYNAMIC_SCORER, scorer(namespace))
    resource = "dynamicscorers.dynamic-scoring.open-cluster-management.io"
    assert refused.value.message == f'{resource} "latency" already exists'
    assert refused.value.status()["code"] == 409
    assert refused.value.status()["reason"] == "AlreadyExists"
    assert refused.value.details["kind"] == "dynamicscorers"


async def test_the_same_name_is_free_elsewhere(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace))
    assert await kube.create(CONFIG_MAP, config_map("default", f"of-{namespace}"))
    await kube.delete(CONFIG_MAP, f"of-{namespace}", "default")


LONG_PREFIX = {"generateName": "p" * 100}


async def test_names_are_generated(kube: Kube, namespace: str) -> None:
    obj = config_map(namespace, generateName="part-")
    del obj["metadata"]["name"]
    first = await kube.create(CONFIG_MAP, obj)
    second = await kube.create(CONFIG_MAP, obj)
    for created in (first, second):
        assert re.fullmatch(r"part-[bcdfghjklmnpqrstvwxz2456789]{5}", created["metadata"]["name"])
        assert created["metadata"]["generateName"] == "part-"
    assert first["metadata"]["name"] != second["metadata"]["name"]
    long = await kube.create(CONFIG_MAP, {**obj, "metadata": {**obj["metadata"], **LONG_PREFIX}})
    assert len(long["metadata"]["name"]) == 63
    named = await kube.create(CONFIG_MAP, config_map(namespace, generateName="part-"))
    assert named["metadata"]["name"] == "settings"


REFUSED: list[tuple[Object, type[ApiError], str]] = [
    ({"metadata": {"resourceVersion": "1"}}, ApiError, "resourceVersion should not be set on obj"),
    ({"metadata": {"name": ""}}, Invalid, "name or generateName is required"),
    ({"metadata": {"namespace": ""}}, BadRequest, "namespace"),
    ({"metadata": {"namespace": "nowhere"}}, NotFound, '^namespaces "nowhere" not found$'),
    ({"metadata": {"name": "Upper"}}, Invalid, r"metadata\.name: .*a lowercase RFC 1123 subdomain"),
    ({"metadata": {"name": "a_b"}}, Invalid, r"metadata\.name: .*a lowercase RFC 1123 subdomain"),
    ({"metadata": {"name": "-edge"}}, Invalid, r"metadata\.name: .*a lowercase RFC 1123 subdomain"),
    ({"metadata": {"name": "n" * 254}}, Invalid, "must be no more than 253"),
    ({"data": {"number": 1}}, BadRequest, 'ConfigMap in version "v1" cannot be handled'),
    ({"data": {"a/b": "c"}}, Invalid, "a valid config key must consist of"),
]


@pytest.mark.parametrize(("fields", "error", "problem"), REFUSED)
async def test_what_no_config_map_can_be(
    kube: Kube, namespace: str, fields: Object, error: type[ApiError], problem: str
) -> None:
    obj = config_map(namespace)
    metadata = {**obj["metadata"], **fields.get("metadata", {})}
    with pytest.raises(error, match=problem):
        await kube.create(CONFIG_MAP, {**obj, **fields, "metadata": metadata})
    assert "settings" not in await names(kube, CONFIG_MAP, namespace)


async def test_the_kind_must_be_served(kube: Kube, namespace: str) -> None:
    unknown = Kind("nobody.example.com", "v1", "Thing", "things")
    with pytest.raises(NotFound):
        await kube.create(unknown, {"metadata": {"name": "a", "namespace": namespace}})


async def test_cluster_scoped_kinds_have_no_namespace(kube: Kube, namespace: str) -> None:
    name = f"gadget-{namespace}"
    created = await kube.create(GADGET, gadget(name))
    assert "namespace" not in created["metadata"]
    await kube.delete(GADGET, name)


async def test_namespaces_are_dns_labels(kube: Kube) -> None:
    with pytest.raises(Invalid, match="must not contain dots"):
        await kube.create(NAMESPACE, {"metadata": {"name": "a.b"}})


async def test_a_status_is_dropped_where_it_is_a_subresource(kube: Kube, namespace: str) -> None:
    obj = {**scorer(namespace), "status": {"healthStatus": "Active"}}
    assert "status" not in await kube.create(DYNAMIC_SCORER, obj)


async def test_a_status_is_kept_where_it_is_no_subresource(kube: Kube, namespace: str) -> None:
    name = f"gadget-{namespace}"
    created = await kube.create(GADGET, gadget(name, status={"seen": True}))
    assert created["status"] == {"seen": True}
    await kube.delete(GADGET, name)


async def test_kinds_without_a_controlled_spec_have_no_generation(
    kube: Kube, namespace: str
) -> None:
    assert "generation" not in (await kube.create(CONFIG_MAP, config_map(namespace)))["metadata"]
    custom = await kube.create(WIDGET, widget(namespace))
    assert custom["metadata"]["generation"] == 1


async def test_the_caller_keeps_what_it_gave_and_owns_what_it_got(
    kube: Kube, namespace: str
) -> None:
    obj = config_map(namespace)
    created = await kube.create(CONFIG_MAP, obj)
    assert "uid" not in obj["metadata"]
    created["data"]["colour"] = "red"
    obj["data"]["colour"] = "red"
    found = await kube.get(CONFIG_MAP, "settings", namespace)
    assert found["data"] == {"colour": "blue"}


async def test_plain_text_of_a_secret_is_encoded(kube: Kube, namespace: str) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": namespace},
        "stringData": {"token": "abc"},
    }
    created = await kube.create(SECRET, secret)
    assert created["data"] == {"token": "YWJj"}
    assert created["type"] == "Opaque"
    assert "stringData" not in created


async def test_nothing_is_written_where_creation_is_refused(kube: Kube, namespace: str) -> None:
    with pytest.raises(Invalid):
        await kube.create(DYNAMIC_SCORER, scorer(namespace, configURL="ftp://x"))
    assert await names(kube, DYNAMIC_SCORER, namespace) == []


async def test_a_claim_has_at_most_1024_characters(kube: Kube, namespace: str) -> None:
    claim = {"metadata": {"name": f"claim-{namespace}"}, "spec": {"value": "v" * 1025}}
    with pytest.raises(Invalid, match=r"spec\.value: Too long"):
        await kube.create(CLUSTER_CLAIM, claim)
