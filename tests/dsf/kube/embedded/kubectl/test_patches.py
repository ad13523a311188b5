"""JSON Patch and strategic merge patch."""

from copy import deepcopy
from typing import Any

import pytest

from dsf.kube.embedded.kubectl import json_patch, strategic_merge_patch
from dsf.kube.embedded.kubectl.json_patch import PatchError

RFC_6902_APPENDIX_A: list[tuple[Any, list[Any], Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    (
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    (
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [
            {"op": "test", "path": "/baz", "value": "qux"},
            {"op": "test", "path": "/foo/1", "value": 2},
        ],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
    ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
]


@pytest.mark.parametrize(("document", "operations", "result"), RFC_6902_APPENDIX_A)
def test_the_examples_of_the_rfc(document: Any, operations: list[Any], result: Any) -> None:
    before = deepcopy(document)
    assert json_patch.patched(document, operations) == result
    assert document == before


@pytest.mark.parametrize(
    "operations",
    [
        {"op": "add"},
        [1],
        [{}],
        [{"op": "spin", "path": "/a"}],
        [{"op": "add", "path": "/a/b/c", "value": 1}],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "add", "path": "/list/9", "value": 1}],
        [{"op": "add", "path": "/list/x", "value": 1}],
        [{"op": "add", "path": "/text/x", "value": 1}],
        [{"op": "add", "path": "/new"}],
        [{"op": "remove", "path": "/none"}],
        [{"op": "replace", "path": "/none", "value": 1}],
        [{"op": "test", "path": "/one", "value": 2}],
        [{"op": "test", "path": "/one", "value": True}],
        [{"op": "move", "from": "/none", "path": "/a"}],
        [{"op": "copy", "path": "/a"}],
    ],
)
def test_operations_that_do_not_fit(operations: Any) -> None:
    with pytest.raises(PatchError):
        json_patch.patched({"list": [], "text": "t", "one": 1}, operations)


def test_copies_are_independent() -> None:
    operations = [
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/-", "value": 2},
    ]
    assert json_patch.patched({"a": [1]}, operations) == {"a": [1], "b": [1, 2]}


STRATEGIC: list[tuple[str, Any, Any, Any]] = [
    ("maps merge", {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
    ("null removes", {"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    ("lists are replaced", {"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    (
        "finalizers are a set",
        {"finalizers": ["a", "b"]},
        {"finalizers": ["b", "c"]},
        {"finalizers": ["a", "b", "c"]},
    ),
    (
        "one of a set is deleted",
        {"finalizers": ["a", "b"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": ["b"]},
    ),
    (
        "items merge by their key",
        {"conditions": [{"type": "A", "x": 1}, {"type": "B"}]},
        {"conditions": [{"type": "A", "y": 2}]},
        {"conditions": [{"type": "A", "x": 1, "y": 2}, {"type": "B"}]},
    ),
    (
        "an item is deleted by its key",
        {"conditions": [{"type": "A"}, {"type": "B"}]},
        {"conditions": [{"type": "A", "$patch": "delete"}]},
        {"conditions": [{"type": "B"}]},
    ),
    (
        "a list is replaced on demand",
        {"conditions": [{"type": "A"}]},
        {"conditions": [{"$patch": "replace"}, {"type": "B"}]},
        {"conditions": [{"type": "B"}]},
    ),
    (
        "the order is given",
        {"conditions": [{"type": "A"}, {"type": "B"}]},
        {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]},
        {"conditions": [{"type": "B"}, {"type": "A"}]},
    ),
    (
        "a map is replaced on demand",
        {"a": {"b": 1}},
        {"a": {"$patch": "replace", "c": 2}},
        {"a": {"c": 2}},
    ),
    ("a map is emptied on demand", {"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}),
    (
        "keys are retained",
        {"a": {"b": 1, "c": 2}},
        {"a": {"$retainKeys": ["c"], "c": 3}},
        {"a": {"c": 3}},
    ),
]


@pytest.mark.parametrize(
    ("target", "patch", "result"), [row[1:] for row in STRATEGIC], ids=[row[0] for row in STRATEGIC]
)
def test_strategic_merge(target: Any, patch: Any, result: Any) -> None:
    before = deepcopy(target)
    assert strategic_merge_patch.merged(target, patch) == result
    assert target == before
