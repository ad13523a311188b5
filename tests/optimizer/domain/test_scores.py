"""Arrays of scores, compared with dictionaries and lists."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.scoring.dimension_format import DimensionFormat
from optimizer.domain.arrays import first_maxima, members_by_key, narrow, widen
from optimizer.domain.score_matrix import CountedEntries, CountedEntry, ScoreMatrix

KEYS = st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.sampled_from("dg"))
NUMBERS = st.one_of(
    st.integers(-100, 100).map(float), st.sampled_from([0.1, 2049.0, 1e-9, 70_000.0, 1e300])
)
SCORES = st.dictionaries(KEYS, NUMBERS)


@given(SCORES, SCORES)
def test_a_matrix_of_scores_is_a_dictionary(first: dict, later: dict) -> None:  # type: ignore[type-arg]
    matrix, expected = ScoreMatrix.of(first).with_values(later), {**first, **later}
    assert dict(matrix) == expected
    assert len(matrix) == len(expected)
    assert matrix.known() == {(cluster, device) for cluster, _, device in expected}
    for app in "abc":
        *values, last = matrix.of_app(app).tolist()
        assert math.isnan(last)
        for (cluster, device), value in zip(matrix.places, values, strict=True):
            of = expected.get((cluster, app, device), math.nan)
            assert value == of or (math.isnan(value) and math.isnan(of))
    places = {app: {(c, d) for c, a, d in expected if a == app} for app in "abc"}
    for app in "abc":
        for other in "abc":
            equal = matrix.lacks(app) == matrix.lacks(other)
            assert equal == (places[app] == places[other])
    with pytest.raises(KeyError):
        matrix["nowhere", "a", "d"]


def test_the_entry_of_a_score_is_the_one_that_counted() -> None:
    form = DimensionFormat.parse("${app};${device}")
    assert isinstance(form, DimensionFormat)
    counted = CountedEntries(
        [CountedEntry(form), CountedEntry(form, " and 2 more")], np.array([[1, -1]], dtype=np.int32)
    )
    of = ScoreMatrix.of({("x", "a", "d"): 1.0, ("x", "a", "g"): 2.0})
    matrix = ScoreMatrix(of.apps, of.places, of.table, counted)
    assert matrix.entry(("x", "a", "d")) == "a;d and 2 more"
    for none in (("x", "a", "g"), ("x", "b", "d"), ("y", "a", "d")):
        assert matrix.entry(none) == ""
    assert of.entry(("x", "a", "d")) == ""


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_the_first_of_the_highest_counts(parts: list[list[float]]) -> None:
    starts = [sum(map(len, parts[:at])) for at in range(len(parts))]
    found = first_maxima(np.array(sum(parts, [])), np.array(starts))  # noqa: RUF017
    expected = [start + part.index(max(part)) for start, part in zip(starts, parts, strict=True)]
    assert found.tolist() == expected


@given(
    st.lists(st.lists(st.one_of(NUMBERS, st.just(math.nan)), min_size=3, max_size=3), min_size=1)
)
def test_narrow_numbers_are_the_same_in_the_narrowest_type(rows: list[list[float]]) -> None:
    made = narrow(np.array(rows))
    assert np.array_equal(widen(made), np.array(rows), equal_nan=True)
    with np.errstate(over="ignore"):
        fits = {
            width: np.array_equal(np.array(rows).astype(width), np.array(rows), equal_nan=True)
            for width in (np.float16, np.float32, np.float64)
        }
    assert made.dtype == next(width for width, same in fits.items() if same)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9))))
def test_members_keep_their_order(pairs: list[tuple[str, int]]) -> None:
    groups = members_by_key(pairs)
    assert list(groups) == list(dict.fromkeys(key for key, _ in pairs))
    assert all(groups[key] == [item for at, item in pairs if at == key] for key in groups)
