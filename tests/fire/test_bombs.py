"""Small texts that become large: what they cost is bounded by what they become."""

import base64
import gzip
import os
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dsf.api.scoring.scorer_summary import load_summaries
from dsf.api.untrusted_text import InvalidInput
from optimizer.follow.record.content import MAX_CONTENT_BYTES, RecordContent, unpacked
from optimizer.wire.plan_record import RolloutPlan
from tests.optimizer.follow.record.test_content_limits import bomb

EXAMPLES = int(os.environ.get("FIRE_EXAMPLES", "100"))
MOST = 4 * MAX_CONTENT_BYTES
"""Memory that reading may take besides copies of the text that the test makes."""
ITEMS = ("[]", "{}", "0", '""', "null", '{"a":0}', "[[]]", "1e9", '"\\u0000"')

SHAPES = st.one_of(
    st.tuples(st.sampled_from(ITEMS), st.integers(450_000, 1_500_000)),
    st.tuples(st.sampled_from(("nested lists", "nested objects")), st.integers(200, 200_000)),
    st.tuples(st.just("one text"), st.integers(MAX_CONTENT_BYTES, 4 * MAX_CONTENT_BYTES)),
    st.tuples(st.just("keys"), st.integers(450_000, 1_000_000)),
)


def text_of(shape: str, size: int) -> str:
    """Return JSON of a shape and a size."""
    match shape:
        case "nested lists":
            return "[" * size + "]" * size
        case "nested objects":
            return '{"a":' * size + "0" + "}" * size
        case "one text":
            return f'"{"x" * size}"'
        case "keys":
            return "{" + ",".join(f'"{number}":0' for number in range(size)) + "}"
        case _:
            return f"[{','.join([shape] * size)}]"


def steps(text: str) -> object:
    """Read as the steps of a rollout."""
    packed = base64.b64encode(gzip.compress(text.encode(), 1, mtime=0)).decode()
    return unpacked(packed, RolloutPlan)


def content(text: str) -> object:
    """Read as what a plan decided; the rest is right."""
    return unpacked(bomb(f'{{"a": {text}}}'), RecordContent)


@pytest.mark.exhaustive
@pytest.mark.fire(
    "what is unpacked is bounded by what it becomes",
    "peak memory of random contents and steps of records, and of summaries",
)
@pytest.mark.parametrize(
    "read", [content, steps, load_summaries], ids=["contents", "steps", "summaries"]
)
@settings(max_examples=max(1, EXAMPLES // 5), deadline=None, phases=[Phase.generate])
@given(drawn=SHAPES)
def test_a_bomb_is_refused_before_it_goes_off(
    read: Callable[[str], object], drawn: tuple[str, int]
) -> None:
    text = text_of(*drawn)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        found = read(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(found, InvalidInput)
    assert peak - before < MOST + 4 * len(text)
