"""Merge patches: the cases of RFC 7386 and what must hold for all documents."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube import json_merge_patch

RFC_7386_APPENDIX_A: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7386_APPENDIX_A)
def test_the_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert json_merge_patch.merged(target, patch) == result


@given(source=documents, target=documents)
def test_the_patch_between_two_documents_leads_from_one_to_the_other(
    source: dict[str, Any], target: dict[str, Any]
) -> None:
    patch = json_merge_patch.patch_between(source, target)
    assert json_merge_patch.same(
        json_merge_patch.without_nulls(json_merge_patch.merged(source, patch)),
        json_merge_patch.without_nulls(target),
    )


@given(source=documents, target=documents)
def test_a_patch_is_empty_exactly_where_nothing_differs(
    source: dict[str, Any], target: dict[str, Any]
) -> None:
    equal = json_merge_patch.same(
        json_merge_patch.without_nulls(source), json_merge_patch.without_nulls(target)
    )
    assert (json_merge_patch.patch_between(source, target) == {}) is equal


@given(target=values, patch=values)
def test_a_patch_changes_neither_argument_and_may_be_applied_twice(target: Any, patch: Any) -> None:
    before = deepcopy((target, patch))
    once = json_merge_patch.merged(target, patch)
    assert (target, patch) == before
    assert json_merge_patch.merged(once, patch) == once


def test_objects_in_lists_lose_their_nulls_as_an_api_server_takes_them_away() -> None:
    patch = {"a": [None, {"b": None, "c": [{"d": None}]}]}
    assert json_merge_patch.merged({"a": []}, patch) == {"a": [None, {"c": [{}]}]}
    assert json_merge_patch.patch_between({"a": [None, {"c": [{}]}]}, patch) == {}


def test_true_is_not_one() -> None:
    assert json_merge_patch.patch_between({"a": 1}, {"a": True}) == {"a": True}
