"""Subgradient descent over the nonnegative orthant."""

import numpy as np
import pytest

from optimizer.domain.arrays import Floats
from optimizer.model.subgradient import StepRule, minimise

CENTRE = np.array([2.0, -1.0, 5.0])
LOWEST = 1.0


def distances(point: Floats) -> tuple[float, Floats]:
    """The sum of distances to a centre, the nearest nonnegative point to which is (2, 0, 5)."""
    return float(np.abs(point - CENTRE).sum()), np.sign(point - CENTRE)


@pytest.mark.parametrize("project_direction", [False, True])
def test_the_lowest_value_is_found_where_the_target_is_it(project_direction: bool) -> None:
    rule = StepRule(
        fresh=1.0,
        kept=0.0,
        distance=lambda value, _lowest, size: size * (value - LOWEST),
        patience=20,
        shrink=0.5,
        least_size=1e-6,
        project_direction=project_direction,
    )
    lowest, point = minimise(distances, np.zeros(3), rule, lambda: False)
    assert lowest == pytest.approx(LOWEST, abs=1e-3)
    assert point == pytest.approx(np.array([2.0, 0.0, 5.0]), abs=1e-3)


def test_it_ends_after_the_evaluation_at_which_it_is_told_to() -> None:
    seen: list[Floats] = []

    def evaluate(point: Floats) -> tuple[float, Floats]:
        seen.append(point)
        return distances(point)

    rule = StepRule(1.0, 0.5, lambda value, lowest, size: value - lowest + size, 5, 0.5, 1e-6)
    lowest, point = minimise(evaluate, np.zeros(3), rule, lambda: len(seen) >= 3)
    assert len(seen) == 3
    assert lowest == min(distances(each)[0] for each in seen)
    assert any(point is each for each in seen)


@pytest.mark.parametrize(
    ("project_direction", "start", "second"),
    [
        (False, [0.0, 0.5], [0.0, 1.0]),
        (True, [0.0, 0.5], [0.0, 1.0]),
        (False, [0.5, 0.5], [0.25, 0.75]),
        (True, [0.5, 0.5], [0.25, 0.75]),
    ],
)
def test_only_a_coordinate_at_0_that_would_fall_takes_no_part_in_the_step(
    project_direction: bool, start: list[float], second: list[float]
) -> None:
    """The step is half a unit divided by the squared length of the direction."""
    seen: list[Floats] = []

    def evaluate(point: Floats) -> tuple[float, Floats]:
        seen.append(point)
        return 1.0, np.array([1.0, -1.0])

    rule = StepRule(1.0, 0.0, lambda *_: 0.5, 9, 0.5, 1e-6, project_direction=project_direction)
    minimise(evaluate, np.array(start), rule, lambda: len(seen) >= 2)
    assert seen[1].tolist() == second
