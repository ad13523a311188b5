"""Knapsacks of resources that are filled band by band."""

import numpy as np
import pytest

from benchmarks.optimizer.instances import instance, problem
from optimizer.solve.blocks import knapsack
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.knapsack import (
    KnapsackBand,
    all_items,
    knapsack_contents,
    solve_knapsacks,
)
from optimizer.solve.blocks.reduction import reduce_to_blocks
from tests.optimizer.solve.test_decomposition import with_cpu


def blocks_of(seed: int) -> BlockProblem:
    reduction = reduce_to_blocks(with_cpu(problem(instance(8, 30, "dist", seed))), np.ones(30))
    assert reduction is not None
    return reduction.blocks


def bands_of(
    blocks: BlockProblem, least: int, monkeypatch: pytest.MonkeyPatch
) -> list[KnapsackBand]:
    monkeypatch.setattr(knapsack, "LEAST_BAND_RESOURCES", least)
    return all_items(blocks)


@pytest.mark.parametrize("seed", range(3))
def test_bands_are_filled_as_well_as_all_resources_together(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = blocks_of(seed)
    random = np.random.default_rng(seed)
    prices = Prices(
        random.uniform(0, 60, len(blocks.sizes)), random.uniform(0, 9, len(blocks.linking.limits))
    )
    count, every = len(blocks.resource_sites), blocks.largest_supply
    together = bands_of(blocks, count, monkeypatch)
    apart = bands_of(blocks, 1, monkeypatch)
    assert len(together) == 1
    assert len(apart) > 1
    assert sorted(np.concatenate([band.resources for band in apart])) == list(range(count))
    one, other = (
        solve_knapsacks(bands, prices.workloads, prices.linking, resources=count, capacity=every)
        for bands in (together, apart)
    )
    at = (blocks.supply_resources, blocks.supply_amounts)
    assert one.best[at] == pytest.approx(other.best[at])
    positions, workloads = knapsack_contents(other, *at)
    filled = np.bincount(positions, blocks.sizes[workloads], len(at[0]))
    assert (filled <= at[1]).all()
