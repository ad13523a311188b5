"""Columns that lose little, and the bound that follows from choosing among them."""

import numpy as np
import pytest

from optimizer.solve.blocks.blocks import Blocks
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.blocks.reduction import reduced
from optimizer.solve.pricing.lagrangian import Effort, searched_prices
from optimizer.solve.pricing.prices import Prices, respond
from optimizer.solve.search.enumeration import near_best, nearest
from optimizer.solve.search.restricted_master import closing
from tests.optimizer.brute_force import best
from tests.optimizer.random_problems import random_problem

EFFORT = Effort("highs", 0.0, 0, lambda: 60.0)
ALL = 100_000


def blocks_of(seed: int) -> tuple[Blocks, float] | None:
    """Return the blocks of a random problem's first priority, and what its optimum is worth."""
    given = random_problem(seed)
    weights = np.array([float(task.priority == given.tiers[0]) for task in given.tasks])
    found = reduced(given, weights, float(len(given.tiers) == 1))
    return None if found is None else (found.blocks, best(given).values[0])


def named(columns: Columns) -> set[tuple[int, tuple[tuple[int, int], ...]]]:
    places = list(zip(columns.tasks.tolist(), columns.slots.tolist(), strict=True))
    starts = columns.starts.tolist()
    return {
        (mode, tuple(sorted(places[starts[at] : starts[at + 1]])))
        for at, mode in enumerate(columns.modes.tolist())
    }


@pytest.mark.parametrize("seed", range(4_000, 4_010))
@pytest.mark.parametrize("limit", [1, 5, 40])
def test_all_columns_that_lose_no_more_than_said_are_among_those_kept(
    seed: int, limit: int
) -> None:
    case = blocks_of(seed)
    if case is None:
        return
    blocks, _ = case
    prices = Prices(np.full(len(blocks.sizes), 7.0), np.zeros(len(blocks.rows.limits)))
    answers = respond(blocks, searched_prices(blocks, EFFORT).groups, prices)

    def never() -> bool:
        return False

    near = nearest(blocks, prices, answers, slack=50.0, limit=limit, stop=never)
    assert len(near.columns) <= limit
    lost = answers.worth[blocks.mode_sites[near.columns.modes]]
    assert (lost - near.columns.profits(blocks, prices) <= 50.0 + 1e-5).all()
    if near.reach >= 0:
        every = near_best(blocks, prices, answers, slack=near.reach, limit=ALL, stop=never)
        assert every is not None
        assert named(every) <= named(near.columns)


@pytest.mark.parametrize("gap", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4_000, 4_016))
def test_no_bound_of_some_columns_is_too_low(seed: int, gap: float) -> None:
    case = blocks_of(seed)
    if case is None:
        return
    blocks, most = case
    effort = Effort("highs", gap, 0, lambda: 60.0)
    priced = searched_prices(blocks, effort)
    answers = respond(blocks, priced.groups, priced.prices)
    held, bound = closing(
        blocks, priced, answers, priced.first, priced.bound, effort, (2, 8, 32, ALL)
    )
    assert held.value(blocks) <= most + 1e-6
    assert bound >= most - 1e-5
    if not gap:
        assert held.value(blocks) == pytest.approx(most, abs=1e-5)
        assert bound == pytest.approx(most, abs=1e-5)
