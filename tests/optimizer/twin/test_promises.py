"""What a PlacementOptimization with defaults promises is true on the twin, for days at a time."""

import pytest

from benchmarks.optimizer.kept_twin import shown
from optimizer.twin.evaluation.sweep import on_this_machine


@pytest.mark.long
def test_each_promise_is_kept() -> None:
    assert [one for one in shown(on_this_machine(1)) if not one.holds] == []
