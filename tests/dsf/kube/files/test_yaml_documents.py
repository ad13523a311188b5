"""What reading YAML costs: a file with thousands of objects is read in seconds."""

import sys
from types import FrameType

from dsf.kube.files.yaml_documents import parsed_yaml

CALLS_PER_VALUE = 20
"""Calls of Python for each value; with a scanner in Python there are 140."""


def test_libyaml_scans_what_is_read() -> None:
    text = "items:\n" + "- metadata: {name: a, namespace: b}\n" * 100
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        (found,) = parsed_yaml(text)
    finally:
        sys.setprofile(None)
    assert len(found["items"]) == 100
    assert calls < CALLS_PER_VALUE * 100 * 6
