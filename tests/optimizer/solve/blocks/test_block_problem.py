"""What remains of blocks."""

import numpy as np

from benchmarks.optimizer.instances import instance, problem
from optimizer.solve.blocks.block_problem import subproblem_of
from optimizer.solve.blocks.reduction import reduce_to_blocks


def test_only_sites_with_copies_and_workloads_that_are_left_remain() -> None:
    given = problem(instance(6, 14, "dist"))
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    blocks = reduction.blocks
    copies, counts = blocks.copies.copy(), blocks.counts.copy()
    copies[[0, 2]] = 0
    counts[[1, 3]] = 0
    rest = subproblem_of(blocks, counts > 0, copies, counts, blocks.linking.limits)
    assert rest.sites.tolist() == np.flatnonzero(copies).tolist()
    assert rest.workloads.tolist() == np.flatnonzero(counts).tolist()
    assert not np.isin(blocks.resource_sites[rest.resources], [0, 2]).any()
    assert not np.isin(blocks.mode_sites[rest.modes], [0, 2]).any()
    wanted = blocks.values[np.ix_(rest.workloads, rest.resources)]
    assert np.array_equal(rest.blocks.values, wanted)
    assert (rest.blocks.copies > 0).all()
    assert (rest.blocks.counts > 0).all()
