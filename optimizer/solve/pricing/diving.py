"""From prices to a decision: fix what the sites keep answering, price the rest again, go on."""

from collections.abc import Callable

import numpy as np

from optimizer.solve.blocks.block_problem import (
    BlockProblem,
    Floats,
    Ints,
    Prices,
    residual_subproblem,
)
from optimizer.solve.blocks.columns import (
    ColumnPool,
    Columns,
    concatenated_columns,
    to_whole_problem,
)
from optimizer.solve.pricing.feasible_columns import feasible_columns
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    items_if_few,
    lower_bound_by_subgradients,
)

_STEPS = 24  # of pricing between two rounds of fixing; the answers of the last half are counted
_SHARE = 0.25  # of the sites fixed in a round
_HASTY_STEPS = 3
_REACH = 0.003
_TOLERANCE = 1e-7


def dive(
    blocks: BlockProblem, prices: Prices, *, stop: Callable[[], bool], hasty: bool = False
) -> tuple[Columns, Ints]:
    """Return columns and how often to take each; stops early with what is fixed by then.

    `hasty`: fix all that fits together at once, a few rounds are enough then. Nothing is returned
    where deciding nothing breaks a row: what is fixed one by one would break it too.
    """
    if (blocks.rows.limits < -_TOLERANCE).any():
        return concatenated_columns([]), np.zeros(0, np.int64)
    steps, share = (_HASTY_STEPS, 1.0) if hasty else (_STEPS, _SHARE)
    copies, counts, limits = blocks.copies.copy(), blocks.counts.copy(), blocks.rows.limits.copy()
    pieces: list[Columns] = []
    times: list[Ints] = [np.zeros(0, np.int64)]
    while copies.any() and counts.any() and not stop():
        rest = residual_subproblem(blocks, copies, counts, limits)
        known = Prices(prices.tasks[rest.tasks], prices.rows)
        found, often, learnt = _price_again(rest.blocks, known, steps, stop)
        columns, whole = feasible_columns(blocks, to_whole_problem(found, rest), limits)
        often = often[whole]
        taken = _fix_columns(blocks, columns, often, (copies, counts, limits), share)
        if not taken.any():
            break
        hit = np.flatnonzero(taken)
        pieces.append(columns.pick(hit))
        times.append(taken[hit])
        known_tasks = prices.tasks.copy()
        known_tasks[rest.tasks] = learnt.tasks
        prices = Prices(known_tasks, learnt.rows)
    return concatenated_columns(pieces), np.concatenate(times)


def _price_again(
    blocks: BlockProblem, prices: Prices, most: int, stop: Callable[[], bool]
) -> tuple[Columns, Floats, Prices]:
    """Price a problem again; return the columns met towards the end, how often, and the prices."""
    pool, steps = ColumnPool(blocks), 0
    first = most // 2

    def seen(answers: PricingResult, _prices: Prices) -> None:
        nonlocal steps
        steps += 1
        if steps > first:
            pool.add(answers.modes, answers.tasks, answers.slots)

    groups = items_if_few(blocks)
    _, learnt = lower_bound_by_subgradients(
        blocks, groups, prices, reach=_REACH, seen=seen, stop=lambda: steps >= most or stop()
    )
    columns, met = pool.counted()
    return columns, met / max(1, steps - first), learnt


def _fix_columns(
    blocks: BlockProblem,
    columns: Columns,
    often: Floats,
    left: tuple[Ints, Ints, Floats],
    share: float,
) -> Ints:
    """Decide how often to take columns, the most frequent first, and take it off what is left."""
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
        tasks, needs = np.unique(columns.tasks[first:end], return_counts=True)
        wanted = max(1, int(often[index] * copies[sites[index]]))
        times = min(wanted, int(copies[sites[index]]), int((counts[tasks] // needs).min()))
        entries = by_column[cuts[index] : cuts[index + 1]]
        times = min(times, goal - int(taken.sum()))
        while times and (limits[rows[entries]] - times * amounts[entries] < -_TOLERANCE).any():
            times -= 1
        if times:
            taken[index] = times
            copies[sites[index]] -= times
            counts[tasks] -= times * needs
            np.subtract.at(limits, rows[entries], times * amounts[entries])
    return taken
