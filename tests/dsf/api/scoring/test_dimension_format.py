"""The score dimension format: parsing, rendering, and reading names back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.untrusted_text import InvalidInput

VALUES = st.text(alphabet=st.characters(exclude_characters=";", codec="utf-8"), max_size=12)


def parsed(text: str) -> DimensionFormat:
    result = DimensionFormat.parse(text)
    assert isinstance(result, DimensionFormat)
    return result


def test_labels_become_a_name() -> None:
    assert parsed("${app};${device}").render({"app": "app01", "device": "all"}) == "app01;all"


def test_a_missing_label_is_empty() -> None:
    assert parsed("${node};${namespace};${pod}").render({"node": "n1"}) == "n1;;"


@pytest.mark.parametrize("text", ["", "score", "$app", "${", "{app}"])
def test_a_format_without_placeholder_is_invalid(text: str) -> None:
    assert isinstance(DimensionFormat.parse(text), InvalidInput)


def test_an_unknown_placeholder_is_named_with_what_exists() -> None:
    result = DimensionFormat.parse("${app};${gpu}")
    assert isinstance(result, InvalidInput)
    assert "${gpu}" in result.message
    assert "${device}" in result.message


@given(st.lists(st.sampled_from(PLACEHOLDERS), min_size=1, unique=True), st.data())
def test_a_rendered_name_is_read_back(fields: list[str], data: st.DataObject) -> None:
    format_ = parsed(";".join(f"${{{field}}}" for field in fields))
    labels = {field: data.draw(VALUES) for field in fields}
    assert format_.match(format_.render(labels)) == labels


@given(
    st.lists(st.sampled_from(PLACEHOLDERS), min_size=1),
    st.dictionaries(st.sampled_from(PLACEHOLDERS), VALUES),
    st.dictionaries(st.sampled_from(PLACEHOLDERS), VALUES),
)
def test_labels_are_filled_in_at_once_or_one_after_the_other(
    fields: list[str], first: dict[str, str], later: dict[str, str]
) -> None:
    dimension = parsed("<" + "|".join(f"${{{field}}}" for field in fields) + ">")
    bound = dimension.bound(first)
    assert bound.fields == tuple(field for field in fields if field not in first)
    assert bound.render(later) == dimension.render({**later, **first})
    assert str(dimension.bound({})) == str(dimension)


@given(st.text(max_size=40))
def test_the_text_of_a_parsed_format_is_the_format(text: str) -> None:
    result = DimensionFormat.parse(text)
    assert isinstance(result, InvalidInput) or str(result) == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("${app};${device}", "app01"),
        ("score-${app}", "other-app01"),
        ("${app}/x", "app01/y"),
        ("${app};${app}", "a;b"),
    ],
)
def test_a_name_of_another_form_does_not_match(text: str, name: str) -> None:
    assert parsed(text).match(name) is None


def test_matching_hostile_names_is_linear() -> None:
    hostile = parsed("${app}a${pod}a${node}a${meta}b")
    assert hostile.match("a" * 100_000) is None
