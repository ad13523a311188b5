"""Label and field selectors: their grammar, and what they match."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.untrusted_text import InvalidInput
from dsf.kube.selectors import (
    FieldSelector,
    LabelSelector,
    Requirement,
    field_selector,
    label_selector,
    label_selector_of,
)

keys = st.sampled_from(["a", "b", "example.com/c"])
words = st.sampled_from(["", "x", "y", "z.1", "in", "notin"])
labels = st.dictionaries(keys, words, max_size=3)
sets = st.builds(
    Requirement,
    keys,
    st.sampled_from(["In", "NotIn"]),
    st.frozensets(words, min_size=1, max_size=3),
)
presences = st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"]))
selectors = st.lists(sets | presences, max_size=3)


def spelled(requirement: Requirement) -> str:
    listed = ", ".join(sorted(requirement.values))
    match requirement.operator:
        case "In":
            return f"{requirement.key} in ({listed})"
        case "NotIn":
            return f"{requirement.key} notin ({listed})"
        case "Exists":
            return requirement.key
    return f"!{requirement.key}"


def as_object(requirement: Requirement) -> dict[str, Any]:
    return {
        "key": requirement.key,
        "operator": requirement.operator,
        **({"values": sorted(requirement.values)} if requirement.values else {}),
    }


@given(requirements=selectors, present=labels)
def test_text_and_object_select_the_same(
    requirements: list[Requirement], present: dict[str, str]
) -> None:
    expected = LabelSelector(tuple(requirements))
    text = label_selector(",".join(map(spelled, requirements)))
    obj = label_selector_of({"matchExpressions": list(map(as_object, requirements))})
    assert text == obj == expected
    assert expected.matches(present) is all(r.matches(present) for r in requirements)


@given(present=labels, key=keys, value=words)
def test_equality_and_its_opposite_divide_everything(
    present: dict[str, str], key: str, value: str
) -> None:
    equal, unequal = label_selector(f"{key}={value}"), label_selector(f"{key}!={value}")
    assert isinstance(equal, LabelSelector)
    assert isinstance(unequal, LabelSelector)
    assert equal.matches(present) is (present.get(key) == value)
    assert unequal.matches(present) is not equal.matches(present)


@given(st.text(alphabet="ab=!(), \tinot<>1/.-", max_size=20))
def test_any_text_is_a_selector_or_says_why_not(text: str) -> None:
    found = label_selector(text)
    assert isinstance(found, LabelSelector) or found.message


@pytest.mark.parametrize(
    ("text", "present", "matches"),
    [
        ("", {}, True),
        (" a = x , b ", {"a": "x", "b": ""}, True),
        ("a==x", {"a": "x"}, True),
        ("a=", {"a": ""}, True),
        ("a in ()", {"a": ""}, True),
        ("in in (in)", {"in": "in"}, True),
        ("a>1", {"a": "2"}, True),
        ("a>1", {"a": "1"}, False),
        ("a<1", {"a": "0"}, True),
        ("a<1", {"a": "x"}, False),
        ("a<1", {}, False),
    ],
)
def test_examples(text: str, present: dict[str, str], matches: bool) -> None:
    found = label_selector(text)
    assert isinstance(found, LabelSelector)
    assert found.matches(present) is matches


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a b", "found 'b', expected: in, notin"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in (b", "expected: ',' or ')'"),
        ("a in b", "found 'b' expected: '('"),
        ("a,,b", "expected: identifier after ','"),
        ("a=b,", "expected: identifier after ','"),
        ("=a", "expected: identifier"),
        ("!", "expected: identifier"),
        ("a=@", "a valid label must be"),
        ("-a", "name part must consist of"),
        ("a/b/c", "a valid label key"),
        ("/a", "prefix part must be non-empty"),
        ("A_B/c", "prefix part a lowercase RFC 1123 subdomain"),
        ("a=" + "x" * 64, "must be no more than 63 bytes"),
        ("a>x", "one integer"),
    ],
)
def test_what_is_no_selector(text: str, problem: str) -> None:
    found = label_selector(text)
    assert isinstance(found, InvalidInput)
    assert problem in found.message


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Matches", "values": ["x"]},
        {"key": "", "operator": "Exists"},
    ],
)
def test_what_is_no_selector_object(expression: dict[str, Any]) -> None:
    assert isinstance(label_selector_of({"matchExpressions": [expression]}), InvalidInput)


def test_match_labels_are_equalities() -> None:
    found = label_selector_of({"matchLabels": {"a": "x"}})
    assert found == LabelSelector((Requirement("a", "In", frozenset({"x"})),))


plain = st.text(alphabet="ab=,\\!", max_size=5)


@given(st.lists(st.tuples(st.sampled_from(["x", "y.z"]), plain, st.booleans()), max_size=3))
def test_escaped_values_of_field_selectors_come_back(terms: list[tuple[str, str, bool]]) -> None:
    def escaped(value: str) -> str:
        return "".join(f"\\{c}" if c in "\\,=" else c for c in value)

    text = ",".join(
        f"{field}{'=' if equal else '!='}{escaped(value)}" for field, value, equal in terms
    )
    found = field_selector(text)
    assert isinstance(found, FieldSelector)
    assert [(t.field, t.value, t.equal) for t in found.terms] == terms


@pytest.mark.parametrize("text", ["a", "a=b=c", "a=b\\", "a=\\x"])
def test_what_is_no_field_selector(text: str) -> None:
    assert isinstance(field_selector(text), InvalidInput)


def test_a_missing_field_is_empty() -> None:
    found = field_selector("a=,b!=x")
    assert isinstance(found, FieldSelector)
    assert found.matches({})
