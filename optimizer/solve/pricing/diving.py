"""Diving heuristic: fix the columns that pricing repeats, price the rest again, go on.

R. Sadykov, F. Vanderbeck, A. Pessoa, I. Tahiri, E. Uchoa, "Primal heuristics for branch and price:
the assets of diving methods", INFORMS Journal on Computing 31 (2019).
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve import tuning
from optimizer.solve.blocks.block_problem import BlockProblem, Prices, subproblem_of
from optimizer.solve.blocks.columns import (
    ROW_TOLERANCE,
    ColumnPool,
    Columns,
    concatenated_columns,
    feasible_columns,
    to_whole_problem,
)
from optimizer.solve.blocks.knapsack import sifted_items
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    items_if_few,
    lower_bound_by_subgradients,
)


def dive(
    blocks: BlockProblem, prices: Prices, *, stop: Callable[[], bool], quick: bool = False
) -> tuple[Columns, Ints]:
    """Return columns and how often each is taken; on `stop`, what is fixed by then.

    `quick`: fix all that fits together in every round; few rounds are enough then. Returns nothing
    where the empty decision violates a row, because every partial decision would violate it too.
    """
    if (blocks.linking.limits < -ROW_TOLERANCE).any():
        return concatenated_columns([]), np.zeros(0, np.int64)
    steps, share = (
        (tuning.QUICK_DIVING_STEPS, 1.0) if quick else (tuning.DIVING_STEPS, tuning.DIVING_SHARE)
    )
    copies, counts, limits = (
        blocks.copies.copy(),
        blocks.counts.copy(),
        blocks.linking.limits.copy(),
    )
    many = blocks.values.size > tuning.ALL_ITEMS_ASSIGNMENTS
    drop = tuning.LARGE_DIVING_TARGET_DROP if many else tuning.DIVING_TARGET_DROP
    pieces: list[Columns] = []
    times: list[Ints] = [np.zeros(0, np.int64)]
    while copies.any() and counts.any() and not stop():
        rest = subproblem_of(blocks, counts > 0, copies, counts, limits)
        known = Prices(prices.workloads[rest.workloads], prices.linking)
        found, often, learnt = _price_again(rest.blocks, known, drop, steps, stop)
        columns, whole = feasible_columns(blocks, to_whole_problem(found, rest), limits)
        often = often[whole]
        taken = _fix_columns(blocks, columns, often, (copies, counts, limits), share)
        if not taken.any():
            break
        hit = np.flatnonzero(taken)
        pieces.append(columns.pick(hit))
        times.append(taken[hit])
        known_workloads = prices.workloads.copy()
        known_workloads[rest.workloads] = learnt.workloads
        prices = Prices(known_workloads, learnt.linking)
    return concatenated_columns(pieces), np.concatenate(times)


def _price_again(
    blocks: BlockProblem, prices: Prices, drop: float, most: int, stop: Callable[[], bool]
) -> tuple[Columns, Floats, Prices]:
    """Descend from prices; return the columns of the last steps, their shares, and the prices.

    Where the descent ends sooner, because prices are optimal already, the last step counts alone.
    """
    pool, steps, last = ColumnPool(blocks), 0, list[PricingResult]()
    first = most // 2

    def seen(pricing: PricingResult, _prices: Prices) -> None:
        nonlocal steps
        steps += 1
        last[:] = [pricing]
        if steps > first:
            pool.add(pricing.modes, pricing.workloads, pricing.resources)

    items = items_if_few(blocks) or sifted_items(blocks, prices, tuning.SIFTING_MARGIN)
    _, learnt = lower_bound_by_subgradients(
        blocks,
        items,
        prices,
        target_drop=drop,
        on_pricing=seen,
        stop=lambda: steps >= most or stop(),
    )
    if steps <= first:
        for pricing in last:
            pool.add(pricing.modes, pricing.workloads, pricing.resources)
    columns, met = pool.counted()
    return columns, met / max(1, steps - first), learnt


def _fix_columns(
    blocks: BlockProblem,
    columns: Columns,
    often: Floats,
    left: tuple[Ints, Ints, Floats],
    share: float,
) -> Ints:
    """Return how often to take columns, the most frequent first, and reduce what is left."""
    copies, counts, limits = left
    sites = blocks.mode_sites[columns.modes]
    goal = max(1, int(share * copies.sum()))
    order = np.lexsort((np.arange(len(often)), -columns.values(blocks), -often))
    of, rows, amounts = columns.uses(blocks)
    by_column = np.argsort(of, kind="stable")
    cuts = np.searchsorted(of[by_column], np.arange(len(columns) + 1))
    taken = np.zeros(len(columns), np.int64)
    for index in order.tolist():
        if taken.sum() >= goal:
            break
        first, end = columns.starts[index], columns.starts[index + 1]
        workloads, needs = np.unique(columns.workloads[first:end], return_counts=True)
        wanted = max(1, int(often[index] * copies[sites[index]]))
        times = min(wanted, int(copies[sites[index]]), int((counts[workloads] // needs).min()))
        entries = by_column[cuts[index] : cuts[index + 1]]
        times = min(times, goal - int(taken.sum()))
        while times and (limits[rows[entries]] - times * amounts[entries] < -ROW_TOLERANCE).any():
            times -= 1
        if times:
            taken[index] = times
            copies[sites[index]] -= times
            counts[workloads] -= times * needs
            np.subtract.at(limits, rows[entries], times * amounts[entries])
    return taken
