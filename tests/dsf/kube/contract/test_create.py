"""Creating objects."""

import re

import pytest

from dsf.kube.errors import AlreadyExists, ApiError, BadRequest, Invalid, NotFound
from dsf.kube.kinds import CLUSTER_CLAIM, CONFIG_MAP, DYNAMIC_SCORER, NAMESPACE, SECRET, Kind
from dsf.kube.port import Kube
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


async def test_a_resource_version_is_refused(kube: Kube, namespace: str) -> None:
    with pytest.raises(
        ApiError, match="resourceVersion should not be set on objects to be created"
    ):
        await kube.create(CONFIG_MAP, config_map(namespace, resourceVersion="1"))


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


async def test_names_are_generated(kube: Kube, namespace: str) -> None:
    obj = config_map(namespace, generateName="part-")
    del obj["metadata"]["name"]
    first = await kube.create(CONFIG_MAP, obj)
    second = await kube.create(CONFIG_MAP, obj)
    for created in (first, second):
        assert re.fullmatch(r"part-[bcdfghjklmnpqrstvwxz2456789]{5}", created["metadata"]["name"])
        assert created["metadata"]["generateName"] == "part-"
    assert first["metadata"]["name"] != second["metadata"]["name"]


async def test_a_name_wins_over_generate_name(kube: Kube, namespace: str) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace, generateName="part-"))
    assert created["metadata"]["name"] == "settings"


async def test_a_long_prefix_is_cut(kube: Kube, namespace: str) -> None:
    obj = config_map(namespace, generateName="p" * 100)
    del obj["metadata"]["name"]
    created = await kube.create(CONFIG_MAP, obj)
    assert len(created["metadata"]["name"]) == 63


async def test_a_name_is_required(kube: Kube, namespace: str) -> None:
    obj = config_map(namespace)
    del obj["metadata"]["name"]
    with pytest.raises(Invalid, match="name or generateName is required"):
        await kube.create(CONFIG_MAP, obj)


async def test_a_namespace_is_required(kube: Kube) -> None:
    obj = config_map("default")
    del obj["metadata"]["namespace"]
    with pytest.raises(BadRequest, match="namespace"):
        await kube.create(CONFIG_MAP, obj)


async def test_the_namespace_must_exist(kube: Kube) -> None:
    with pytest.raises(NotFound) as refused:
        await kube.create(CONFIG_MAP, config_map("nowhere-to-be-found"))
    assert refused.value.message == 'namespaces "nowhere-to-be-found" not found'


async def test_the_kind_must_be_served(kube: Kube, namespace: str) -> None:
    unknown = Kind("nobody.example.com", "v1", "Thing", "things")
    with pytest.raises(NotFound):
        await kube.create(unknown, {"metadata": {"name": "a", "namespace": namespace}})


async def test_cluster_scoped_kinds_have_no_namespace(kube: Kube, namespace: str) -> None:
    name = f"gadget-{namespace}"
    created = await kube.create(GADGET, gadget(name))
    assert "namespace" not in created["metadata"]
    await kube.delete(GADGET, name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Upper", "a lowercase RFC 1123 subdomain must consist of"),
        ("under_score", "a lowercase RFC 1123 subdomain must consist of"),
        ("-edge", "a lowercase RFC 1123 subdomain must consist of"),
        ("n" * 254, "must be no more than 253"),
    ],
)
async def test_names_are_dns_subdomains(
    kube: Kube, namespace: str, name: str, problem: str
) -> None:
    with pytest.raises(Invalid, match=problem) as refused:
        await kube.create(CONFIG_MAP, config_map(namespace, name))
    assert refused.value.details["causes"][0]["field"] == "metadata.name"


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


async def test_a_config_map_holds_text(kube: Kube, namespace: str) -> None:
    obj = config_map(namespace)
    obj["data"] = {"number": 1}
    with pytest.raises(BadRequest, match='ConfigMap in version "v1" cannot be handled'):
        await kube.create(CONFIG_MAP, obj)


async def test_the_keys_of_a_config_map_are_file_names(kube: Kube, namespace: str) -> None:
    obj = config_map(namespace)
    obj["data"] = {"a/b": "c"}
    with pytest.raises(Invalid, match="a valid config key must consist of"):
        await kube.create(CONFIG_MAP, obj)


async def test_nothing_is_written_where_creation_is_refused(kube: Kube, namespace: str) -> None:
    with pytest.raises(Invalid):
        await kube.create(DYNAMIC_SCORER, scorer(namespace, configURL="ftp://x"))
    assert await names(kube, DYNAMIC_SCORER, namespace) == []


async def test_a_claim_has_at_most_1024_characters(kube: Kube, namespace: str) -> None:
    claim = {"metadata": {"name": f"claim-{namespace}"}, "spec": {"value": "v" * 1025}}
    with pytest.raises(Invalid, match=r"spec\.value: Too long"):
        await kube.create(CLUSTER_CLAIM, claim)
