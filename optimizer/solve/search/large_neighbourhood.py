"""Improving a decision: free some sites with what runs on them, and solve those anew.

P. Shaw, "Using constraint programming and local search methods to solve vehicle routing problems",
CP 1998 (large neighbourhood search). The sites freed are those that prices say do worst.
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.solve.blocks.block_problem import (
    BlockProblem,
    Floats,
    Ints,
    Prices,
    Subproblem,
    residual_subproblem,
)
from optimizer.solve.blocks.columns import (
    ColumnPool,
    Columns,
    ColumnSelection,
    concatenated_columns,
    to_whole_problem,
)
from optimizer.solve.pricing.feasible_columns import feasible_columns
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    items_if_few,
    lower_bound_by_subgradients,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import is_feasible, solve_master
from optimizer.solve.search.column_enumeration import best_columns_within

_STEPS = 60
_WARM = 10  # steps before columns are collected
_REACH = 0.005
_FIRST_SIZE = 10
_GROWTH = 1.4
_BETTER = 1e-9
_NODES = 50
_LIMIT = 600


def improve_by_large_neighbourhoods(
    blocks: BlockProblem,
    prices: Prices,
    worth: Floats,
    held: ColumnSelection,
    *,
    solver: SolverName,
    random: np.random.Generator,
    enough: Callable[[float], bool],
    found: Callable[[ColumnSelection], None],
    left: Callable[[], float],
    tries: int,
) -> ColumnSelection:
    """Return a decision at least as good: ends when it is enough, time is up, or tries fail.

    `found` is told every better one.
    """
    size, failed = float(_FIRST_SIZE), 0
    sites = len(blocks.copies)
    while not enough(held.value(blocks)) and left() > 0 and failed < tries:
        freed = _destroyed_sites(blocks, prices, worth, held, min(int(size), sites), random)
        other, proven = _repair(blocks, prices, held, freed, solver, left)
        if other.value(blocks) > held.value(blocks) + _BETTER * abs(held.value(blocks)):
            held, failed = other, 0
            found(held)
        else:
            failed += 1
            if proven and freed.all():
                return held
            size = min(size * _GROWTH, sites) if proven else max(2.0, size / _GROWTH)
    return held


def _destroyed_sites(
    blocks: BlockProblem,
    prices: Prices,
    worth: Floats,
    held: ColumnSelection,
    size: int,
    random: np.random.Generator,
) -> Ints:
    """Choose sites, more probably those that lose most against their best answer."""
    sites = blocks.mode_sites[held.columns.modes]
    profits = held.columns.profits(blocks, prices) * held.multiplicities
    regret = worth * blocks.copies - np.bincount(sites, profits, len(blocks.copies))
    weight = np.maximum(regret, 0.0) + 0.2 * max(float(np.abs(regret).mean()), 1e-6)
    chosen = random.choice(len(weight), size, replace=False, p=weight / weight.sum())
    freed = np.zeros(len(weight), np.int64)
    freed[chosen] = 1
    return freed


def _repair(
    blocks: BlockProblem,
    prices: Prices,
    held: ColumnSelection,
    freed: Ints,
    solver: SolverName,
    left: Callable[[], float],
) -> tuple[ColumnSelection, bool]:
    """Solve the freed sites with the tasks that the others leave; tell whether that was proven."""
    inside = freed[blocks.mode_sites[held.columns.modes]] > 0
    outside = held.columns.pick(np.flatnonzero(~inside)), held.multiplicities[~inside]
    rest = residual_problem(blocks, *outside, freed * blocks.copies)
    if not len(rest.tasks):
        return held, True
    pool = ColumnPool(rest.blocks)
    start = np.flatnonzero(inside)
    own = to_subproblem(held.columns.pick(start), rest, blocks)
    pool.extend(own)
    steps = 0

    def seen(answers: PricingResult, _prices: Prices) -> None:
        nonlocal steps
        steps += 1
        if steps > _WARM:
            pool.add(answers.modes, answers.tasks, answers.slots)

    known = Prices(prices.tasks[rest.tasks], prices.rows)
    groups = items_if_few(rest.blocks)
    bound, learnt = lower_bound_by_subgradients(
        rest.blocks,
        groups,
        known,
        reach=_REACH,
        seen=seen,
        stop=lambda: steps >= _STEPS or left() <= 0,
    )
    answers = price_blocks(rest.blocks, groups, learnt)
    slack = max(0.0, bound - float(own.values(rest.blocks) @ held.multiplicities[inside]))
    if groups is not None:
        near = best_columns_within(
            rest.blocks,
            learnt,
            answers,
            slack=slack,
            limit=_LIMIT,
            stop=lambda: left() <= 0,
        )
        pool.extend(near.columns)
    pool.extend(feasible_columns(rest.blocks, pool.columns(), rest.blocks.rows.limits)[0])
    columns = pool.columns()
    times = np.zeros(len(columns), np.int64)
    times[: len(start)] = held.multiplicities[inside]
    taken = solve_master(
        rest.blocks, columns, solver=solver, seconds=left(), start=times, nodes=_NODES
    )
    if taken is None or not is_feasible(rest.blocks, columns, taken.multiplicities):
        return held, False
    hit = np.flatnonzero(taken.multiplicities)
    inner = to_whole_problem(columns.pick(hit), rest)
    found = ColumnSelection(
        concatenated_columns([outside[0], inner]),
        np.concatenate([outside[1], taken.multiplicities[hit]]),
    )
    return found, taken.proven


def residual_problem(
    blocks: BlockProblem, columns: Columns, times: Ints, copies: Ints
) -> Subproblem:
    """Return what columns leave of the tasks and rows, on the given copies of sites."""
    used = np.bincount(columns.tasks, times[columns.owners], len(blocks.sizes)).astype(np.int64)
    of, rows, amounts = columns.uses(blocks)
    spent = np.bincount(rows, amounts * times[of], len(blocks.rows.limits))
    return residual_subproblem(blocks, copies, blocks.counts - used, blocks.rows.limits - spent)


def to_subproblem(columns: Columns, rest: Subproblem, blocks: BlockProblem) -> Columns:
    """Return columns of the whole as columns of a part that has all they use."""
    tasks = np.zeros(len(blocks.sizes), np.int64)
    tasks[rest.tasks] = np.arange(len(rest.tasks))
    slots = np.zeros(len(blocks.slot_sites), np.int64)
    slots[rest.slots] = np.arange(len(rest.slots))
    modes = np.zeros(len(blocks.mode_sites), np.int64)
    modes[rest.modes] = np.arange(len(rest.modes))
    return Columns(modes[columns.modes], columns.starts, tasks[columns.tasks], slots[columns.slots])
