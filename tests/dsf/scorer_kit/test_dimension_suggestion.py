"""The dimension format that results suggest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.scorer_kit.registration import suggested_format

Metric = dict[str, str]


@pytest.mark.parametrize(
    ("results", "suggested"),
    [
        ([], "${node};${namespace};${pod}"),
        ([{"node": "a", "namespace": "b", "pod": "c", "app": "d"}], "${node};${namespace};${pod}"),
        ([{"app": "a", "device": "x"}, {"app": "a", "device": "y"}], "${app};${device}"),
        ([{"app": "a"}, {"app": "a", "device": "y"}], None),
        ([{"app": "a", "meta": "1"}, {"app": "a", "meta": "2"}], "${app};${meta}"),
        ([{"app": "a"}, {"app": "a"}], None),
        ([{}], "${scoreName}"),
        ([{"instance": "x"}], "${scoreName}"),
        ([{}, {}], None),
    ],
)
def test_all_labels_that_every_result_has_are_used(
    results: list[Metric], suggested: str | None
) -> None:
    assert suggested_format(results) == suggested


labels = st.sampled_from(["node", "namespace", "pod", "app", "device", "meta", "other"])


@given(st.lists(st.dictionaries(labels, st.sampled_from(["", "a", "b"])), max_size=4))
def test_a_suggested_format_tells_results_apart(results: list[Metric]) -> None:
    suggested = suggested_format(results)
    if suggested is not None:
        form = DimensionFormat.parse(suggested)
        assert not isinstance(form, InvalidInput)
        assert len({form.render(metric) for metric in results}) == len(results)
