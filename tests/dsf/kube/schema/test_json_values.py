"""What a caller gives becomes plain JSON values, whatever Python has made of them."""

from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest

from dsf.api.untrusted_text import UntrustedName
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
    ],
)
def test_subclasses_become_plain_values(value: Any, plain: Any) -> None:
    found = copied(accepted(value))
    # What a subclass prints differs, also where it is the key of an object.
    assert repr(found) == repr(plain)
