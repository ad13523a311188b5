"""Columns that are fixed step by step."""

import numpy as np
import pytest

from optimizer.model.parameters import NO_DEVICE, ClusterResource, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import Prices
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing.diving import dive


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("cpu", "placed"), [(4.0, 2), (3.9, 1)])
def test_what_fits_a_row_exactly_is_fixed(cpu: float, placed: int, quick: bool) -> None:
    """Three workloads ask for 2 cpu each, of which there is just enough for two, or too little."""
    given = Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"), ClusterResource(0, "cpu", NO_DEVICE)),
        (),
        tuple(
            ProblemWorkload(f"w{at}", "w", "gpu", 1.0, requests=(("cpu", 2.0),)) for at in range(3)
        ),
        np.array([[8.0, np.nan], [7.0, np.nan], [6.0, np.nan]]),
        np.array([3.0, cpu]),
    )
    reduction = reduce_to_blocks(given, np.ones(3))
    assert reduction is not None
    blocks = reduction.blocks
    free = Prices(np.zeros(len(blocks.sizes)), np.zeros(len(blocks.linking.limits)))
    columns, times = dive(blocks, free, stop=lambda: False, quick=quick)
    assert int((np.diff(columns.starts) * times).sum()) == placed


@pytest.mark.parametrize("quick", [False, True])
def test_prices_that_are_optimal_at_once_are_dived_from_too(quick: bool) -> None:
    """Everything fits, so the first pricing takes everything and the descent ends with it."""
    given = Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"),),
        (),
        tuple(ProblemWorkload(f"w{at}", f"w{at}", "gpu", 1.0) for at in range(2)),
        np.array([[8.0], [7.0]]),
        np.array([3.0]),
    )
    reduction = reduce_to_blocks(given, np.ones(2))
    assert reduction is not None
    blocks = reduction.blocks
    found = ColumnSelection(
        *dive(blocks, Prices(np.zeros(2), np.zeros(0)), stop=lambda: False, quick=quick)
    )
    assert found.value(blocks) == 15.0
