"""Score names become object names that the API server accepts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.names import score_object_name

DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@pytest.mark.parametrize(
    ("score", "name"),
    [
        ("sample_my_score", "sample-my-score"),
        ("example_performance_score", "example-performance-score"),
        ("CPU Load", "cpu-load"),
        ("__x__", "x"),
    ],
)
def test_examples(score: str, name: str) -> None:
    assert score_object_name(score) == name


@given(st.text(max_size=300))
def test_the_name_is_dns_safe_or_empty(score: str) -> None:
    name = score_object_name(score)
    assert not name or (DNS_1123.fullmatch(name) and len(name) <= 253)
