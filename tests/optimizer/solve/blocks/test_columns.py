"""Columns without what the linking rows rule out."""

import numpy as np
import pytest

from optimizer.model.parameters import NO_DEVICE, ClusterResource, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.blocks.columns import Columns, feasible_columns
from optimizer.solve.blocks.reduction import reduce_to_blocks


@pytest.mark.parametrize(("cpu", "kept"), [(6.0, {7, 8, 9}), (5.0, {8, 9}), (3.0, {9}), (1.0, {})])
def test_no_more_is_left_out_of_a_column_than_exceeds_a_limit(cpu: float, kept: set[int]) -> None:
    """Three workloads ask for 2 cpu each; that of least value goes first."""
    given = Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"), ClusterResource(0, "cpu", NO_DEVICE)),
        (),
        tuple(
            ProblemWorkload(f"w{at}", "w", "gpu", 1.0, requests=(("cpu", 2.0),)) for at in range(3)
        ),
        np.array([[8.0, np.nan], [7.0, np.nan], [9.0, np.nan]]),
        np.array([4.0, cpu]),
    )
    reduction = reduce_to_blocks(given, np.ones(3))
    assert reduction is not None
    blocks = reduction.blocks
    at = np.flatnonzero(np.isfinite(blocks.values[:, 0]))
    every = Columns(np.array([0]), np.array([0, len(at)]), at, np.zeros(len(at), np.int64))
    found, positions = feasible_columns(blocks, every, blocks.linking.limits)
    assert set(blocks.values[found.workloads, found.resources].tolist()) == set(kept)
    assert positions.tolist() == ([0] if kept else [])
