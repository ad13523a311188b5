"""The example scenarios can be played."""

from pathlib import Path

import pytest

from optimizer.twin.engine import play
from optimizer.twin.evaluation.scenario_file import read_scenario
from tests.repository import ROOT

EXAMPLES = sorted((ROOT / "docs/examples/simulate").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_played(path: Path) -> None:
    """Two hours of it, with the loop that posts."""
    scenario = read_scenario(path).model_copy(
        update={"controller": "Naive", "duration": 7200.0, "naive_every": 600.0}
    )
    played = play(scenario)
    assert played.value_hours > 0
