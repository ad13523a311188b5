"""The recordings that are shipped: each can be read, has its licence, and is small."""

import json

import pytest

from benchmarks.forecast.gpu_inference import recording
from dsf.scorer_kit.recordings import RECORDINGS, load
from tests.repository import ROOT

README = (ROOT / "dsf/scorer_kit/recordings/README.md").read_text()


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_read_small_and_described(name: str) -> None:
    path = RECORDINGS[name]
    (series,) = load(path).queries.values()
    assert len({len(one.values) for one in series}) == 1
    assert path.stat().st_size < 50_000
    assert f"| `{name}` |" in README


def test_the_made_recording_is_what_its_program_makes() -> None:
    assert json.loads(RECORDINGS["gpu-inference"].read_text()) == recording()
