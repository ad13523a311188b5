"""What a caller gives becomes plain JSON values, whatever Python has made of them."""

from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest

from dsf.api.untrusted_text import UntrustedName
from dsf.kube.errors import BadRequest
from dsf.kube.schema.json_values import accepted, copied


class Count(IntEnum):
    TWO = 2


class Word(StrEnum):
    SPOKEN = "spoken"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (UntrustedName("a b"), "a b"),
        (UntrustedName("ä b"), "ä b"),
        ({UntrustedName("a b"): 1}, {"a b": 1}),
        ([Word.SPOKEN], ["spoken"]),
        (Count.TWO, 2),
        (np.float64(1.5), 1.5),
        (np.float64(2.0), 2),
        ((True, None), [True, None]),
        ("\ud800x", "\ufffdx"),
    ],
)
def test_subclasses_become_plain_values(value: Any, plain: Any) -> None:
    found = copied(accepted(value))
    # What a subclass prints differs, also where it is the key of an object.
    assert repr(found) == repr(plain)


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "error", "problem"),
    [
        (float("nan"), BadRequest, "is not a JSON number"),
        (float("inf"), BadRequest, "is not a JSON number"),
        (10**400, BadRequest, "an integer of 1329 bits is too large"),
        (deep(300), BadRequest, "nested deeper"),
        (object(), TypeError, "object is not a JSON value"),
        (b"bytes", TypeError, "bytes is not a JSON value"),
        ({1: "a"}, TypeError, "1 is not a JSON key"),
        (datetime(2026, 1, 1, tzinfo=UTC), TypeError, "datetime is not a JSON value"),
    ],
)
def test_what_is_no_json_value_is_refused(value: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        accepted({"spec": value})
