# SPDX-License-Identifier: Apache-2.0
"""The documents of the scoring API: which samples are numbers."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from .wire import Series


def series(*values: str) -> Series:
    points = [(60 * position, value) for position, value in enumerate(values)]
    return Series.model_validate({"metric": {}, "values": points})


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_is_read_as_prometheus_writes_it(value: float) -> None:
    assert series(f"{Decimal(value):f}").values == [(0, value)]
    assert series(repr(value)).values == [(0, value)]


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1_0", " 1", "1e999", "infinity", "nan", "0x1", "\u0661", "1" * 401, "--1", "."],
)
def test_what_prometheus_never_writes_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="number in a string"):
        series(text)


def test_finite_samples_are_sorted_and_leave_out_what_no_score_can_be_made_of() -> None:
    values = [(3, "NaN"), (2, "+Inf"), (4, "5"), (1, "-Inf"), (0, "1e101"), (0, "2"), (5, "-1e100")]
    read = Series.model_validate({"metric": {}, "values": values})
    assert read.finite() == [(0, 2), (4, 5), (5, -1e100)]
