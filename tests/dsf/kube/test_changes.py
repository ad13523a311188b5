"""Desired against observed, decided without any API server."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube import json_merge_patch
from dsf.kube.changes import Create, Delete, Patch, diff, merge_patch, status_patch
from dsf.kube.kinds import CONFIG_MAP, MANIFEST_WORK
from dsf.kube.port import Object


def config_map(name: str = "a", *, namespace: str = "ns", **fields: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def served(obj: Object, **metadata: Any) -> Object:
    """The object as an API server would show it."""
    added = {"uid": "u-1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return deepcopy(obj) | {"metadata": {**obj["metadata"], **added, **metadata}}


def test_what_is_as_desired_needs_no_change() -> None:
    wanted = config_map(data={"a": "1"}, metadata={"labels": {"ours": "yes"}})
    assert diff(CONFIG_MAP, [wanted], [served(wanted)]) == []


def test_a_missing_object_is_created_without_its_status_which_follows_as_a_patch() -> None:
    wanted = config_map(spec={"x": 1}, status={"phase": "Ready"})
    assert diff(MANIFEST_WORK, [wanted], []) == [
        Create(MANIFEST_WORK, config_map(spec={"x": 1})),
        Patch(MANIFEST_WORK, "a", "ns", {"status": {"phase": "Ready"}}, "status"),
    ]


def test_what_nobody_desires_is_deleted_by_uid_and_once_if_in_another_namespace() -> None:
    wanted = config_map(namespace="b")
    leaving = served(config_map("left"), deletionTimestamp="2026-01-01T00:00:00Z")
    assert diff(CONFIG_MAP, [wanted], [leaving, served(config_map(namespace="c"))]) == [
        Create(CONFIG_MAP, wanted),
        Delete(CONFIG_MAP, "a", "c", "u-1"),
    ]


PATCHES: list[tuple[str, Object, Object, Object]] = [
    (
        "keys of an owned map that are not desired are removed",
        {"data": {"keep": "1", "drop": "2"}},
        {"data": {"keep": "1"}},
        {"data": {"drop": None}},
    ),
    (
        "labels of others are left alone, and a null removes one",
        {"metadata": {"labels": {"theirs": "x", "old": "y"}}},
        {"metadata": {"labels": {"ours": "z", "old": None, "never": None}}},
        {"metadata": {"labels": {"ours": "z", "old": None}}},
    ),
    (
        "fields that are not named are left alone",
        {"data": {"a": "1"}, "metadata": {"finalizers": ["f"]}},
        {},
        {},
    ),
    (
        "a named list of finalizers is ours",
        {"metadata": {"finalizers": ["f", "g"]}},
        {"metadata": {"finalizers": ["g"]}},
        {"metadata": {"finalizers": ["g"]}},
    ),
    (
        "a desired resource version guards the patch",
        {"data": {"a": "1"}},
        {"data": {"a": "2"}, "metadata": {"resourceVersion": "7"}},
        {"data": {"a": "2"}, "metadata": {"resourceVersion": "7"}},
    ),
]


@pytest.mark.parametrize(("observed", "desired", "patch"), [row[1:] for row in PATCHES])
def test_the_smallest_patch(observed: Object, desired: Object, patch: Object) -> None:
    assert merge_patch(served(config_map(**observed)), config_map(**desired)) == patch


@pytest.mark.parametrize("field", ["data", "spec", "immutable"])
@pytest.mark.parametrize("empty", [{}, [], None, False])
def test_empty_and_absent_are_the_same(field: str, empty: Any) -> None:
    assert merge_patch(served(config_map()), config_map(**{field: empty})) == {}


def test_the_status_is_patched_by_the_fields_that_are_named() -> None:
    observed = served(config_map(status={"phase": "A", "theirs": 1, "scores": [1, 2]}))
    desired = config_map(status={"phase": "B", "scores": [1]})
    assert status_patch(observed, desired) == {"status": {"phase": "B", "scores": [1]}}
    assert merge_patch(observed, desired) == {}


def test_a_change_reads_as_a_sentence() -> None:
    assert str(Create(CONFIG_MAP, config_map())) == "create ConfigMap a in ns"
    assert str(Patch(CONFIG_MAP, "a", "ns", {}, "status")) == "patch ConfigMap a in ns (status)"
    assert str(Delete(MANIFEST_WORK, "a", None)) == "delete ManifestWork a"


texts = st.sampled_from(["", "1", "2"])
maps = st.dictionaries(st.sampled_from("abc"), texts, max_size=3)
trees = st.recursive(
    texts | st.none(),
    lambda inner: (
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2) | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)
specs = st.dictionaries(st.sampled_from("xyz"), trees, max_size=3)
objects = st.builds(
    lambda labels, data, spec: config_map(metadata={"labels": labels}, data=data, spec=spec),
    maps,
    maps,
    specs,
)


@given(before=objects, desired=objects)
def test_a_patched_object_has_every_desired_field_and_needs_no_second_patch(
    before: Object, desired: Object
) -> None:
    observed = served(before)
    result = json_merge_patch.merged(observed, merge_patch(observed, desired))
    assert merge_patch(result, desired) == {}
    assert json_merge_patch.same(result["data"], desired["data"])
    assert json_merge_patch.same(
        json_merge_patch.without_nulls(result["spec"]),
        json_merge_patch.without_nulls(desired["spec"]),
    )
    assert result["metadata"]["labels"] == {
        **before["metadata"]["labels"],
        **desired["metadata"]["labels"],
    }
    assert result["metadata"]["uid"] == observed["metadata"]["uid"]


@given(desired=st.lists(st.tuples(texts, maps), max_size=4), observed=st.lists(texts, max_size=4))
def test_diff_leads_to_exactly_the_desired_objects(
    desired: list[tuple[str, dict[str, str]]], observed: list[str]
) -> None:
    wanted = {name: config_map(name, data=data) for name, data in desired}
    present = {name: served(config_map(name, data={"a": "9"})) for name in observed}
    for change in diff(CONFIG_MAP, wanted.values(), present.values()):
        match change:
            case Create(_, obj):
                assert change.name not in present
                present[change.name] = obj
            case Patch(_, name, _, body):
                present[name] = json_merge_patch.merged(present[name], body)
            case Delete(_, name):
                del present[name]
    assert diff(CONFIG_MAP, wanted.values(), present.values()) == []
    assert present.keys() == wanted.keys()
