"""Score names become object names that the API server accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api import name_syntax
from dsf.api.names import score_object_name


@pytest.mark.parametrize(
    ("score", "name"),
    [
        ("sample_my_score", "sample-my-score"),
        ("example_performance_score", "example-performance-score"),
        ("CPU Load", "cpu-load"),
        ("__x__", "x"),
        ("v1.0_beta", "v1.0-beta"),
        ("a..b", "a.b"),
        ("a._b_.c", "a.b.c"),
    ],
)
def test_examples(score: str, name: str) -> None:
    assert score_object_name(score) == name


@given(st.text(max_size=300) | st.text(alphabet="aB1._-", max_size=300))
def test_the_name_is_dns_safe_or_empty(score: str) -> None:
    name = score_object_name(score)
    assert not name or name_syntax.dns_subdomain(name) == []


@given(st.text(alphabet="ab1.-", max_size=253))
def test_a_name_that_is_dns_safe_stays(score: str) -> None:
    assert name_syntax.dns_subdomain(score) or score_object_name(score) == score
