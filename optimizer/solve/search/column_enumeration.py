"""Enumerates the columns that a better decision could use.

With a bound U at some prices and a decision of value V, every column of a decision that is worth
more than V loses at most U - V against the best column of its site. Where such columns are few, the
master over all of them is exact: R. Baldacci, N. Christofides, A. Mingozzi, "An exact algorithm for
the vehicle routing problem based on the set partitioning formulation with additional cuts",
Mathematical Programming 115 (2008).

Labels are partial columns, extended workload by workload, for all modes at once. Dynamic
programming gives what the workloads to come can add (completion bounds), so a label is dropped when
no column that it can become loses little enough.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.model.decision_comparison import SAME_VALUE
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import Columns, concatenated_columns
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult, assignment_profits

_ENUMERATED_CELLS = 1_500_000
"""Cells of the completion bounds of modes that are enumerated at once, 12 MB."""


class EnumeratedColumns(NamedTuple):
    """Columns that lose little; all that lose at most `complete_loss` are among them.

    It is negative where nothing is known to be complete.
    """

    columns: Columns
    complete_loss: float


class _Labels(NamedTuple):
    """Partial columns: their modes, and what they lose at least, [labels]."""

    modes: Ints
    lost: Floats


class _Extension(NamedTuple):
    """How labels came about: the label before, and how many of a workload were added."""

    parents: Ints
    amounts: Ints
    workload: int
    resource_of_modes: Ints


class _CompletionBounds(NamedTuple):
    """Workloads in turn, their profits, and the profit still possible from each turn on.

    `profits[turn]` [resources], `ahead[turn]` [resources, capacities].
    """

    workloads: list[int]
    profits: list[Floats]
    ahead: list[Floats]


def best_columns_within(
    blocks: BlockProblem,
    prices: Prices,
    pricing: PricingResult,
    *,
    slack: float,
    limit: int,
    stop: Callable[[], bool],
) -> EnumeratedColumns:
    """Return the columns that lose at most `slack`, at most the `limit` best of them.

    Returns no columns, with a negative `complete_loss`, if `stop` returns True.
    """
    lost = pricing.site_profits[blocks.mode_sites] - pricing.mode_profits
    wanted = np.flatnonzero(lost <= slack + SAME_VALUE)
    profits = assignment_profits(blocks, prices)
    width = max(1, _ENUMERATED_CELLS // max(1, len(profits) * (blocks.largest_supply + 1)))
    complete_loss, pieces, losses = slack, list[Columns](), list[Floats]()
    for first in range(0, len(wanted), width):
        modes = wanted[first : first + width]
        growth = _Labelling(blocks, profits, limit, complete_loss, stop)
        states = growth.ended(_Labels(modes, lost[modes]))
        if stop():
            return EnumeratedColumns(concatenated_columns([]), -1.0)
        complete_loss = growth.complete_loss
        pieces.append(growth.traced(states.modes))
        losses.append(states.lost)
    columns = concatenated_columns(pieces)
    kept, complete_loss = _least_losses(
        np.concatenate([np.zeros(0), *losses]), complete_loss, limit
    )
    return EnumeratedColumns(_without_repeats(blocks, columns.pick(kept)), complete_loss)


class _Labelling:
    """Extends labels; `complete_loss` falls when labels are dropped beyond the limit."""

    def __init__(
        self,
        blocks: BlockProblem,
        profits: Floats,
        limit: int,
        complete_loss: float,
        stop: Callable[[], bool],
    ) -> None:
        self._blocks, self._profits, self._limit, self._stop = blocks, profits, limit, stop
        self._steps: list[_Extension] = []
        self.complete_loss = complete_loss

    def ended(self, states: _Labels) -> _Labels:
        """Extend labels on one resource of each mode after another."""
        blocks = self._blocks
        starts = np.searchsorted(blocks.supply_modes, np.arange(len(blocks.mode_sites) + 1))
        parts = np.diff(starts)
        for rank in range(int(parts[states.modes].max(initial=0))):
            own = np.unique(states.modes[parts[states.modes] > rank])
            resources = np.full(len(parts), -1, np.int64)
            supplies = np.zeros(len(parts), np.int64)
            resources[own] = blocks.supply_resources[starts[own] + rank]
            supplies[own] = blocks.supply_amounts[starts[own] + rank]
            states = self._filled(states, resources, supplies)
        return states

    def _filled(self, states: _Labels, resources: Ints, supplies: Ints) -> _Labels:
        """Extend labels on one resource of their mode, -1 for modes that have no more."""
        modes, lost = states
        used, rows = np.unique(resources[modes], return_inverse=True)
        left = supplies[modes]
        width = int(left.max(initial=0)) + 1
        tables = _completion_bounds(self._blocks, self._profits, used, width, self.complete_loss)
        for turn, workload in enumerate(tables.workloads):
            if self._stop():
                break
            size, most = int(self._blocks.sizes[workload]), _most(self._blocks, workload, width - 1)
            cells = rows * width + left
            rest = tables.ahead[turn + 1].ravel()
            base, profit = lost + tables.ahead[turn].ravel()[cells], tables.profits[turn][rows]
            parents, losses = [np.arange(len(cells))], [base - rest[cells]]
            for amount in range(1, most + 1):
                fits = np.flatnonzero(left >= amount * size)
                parents.append(fits)
                ahead = rest[cells[fits] - amount * size]
                losses.append(base[fits] - amount * profit[fits] - ahead)
            every = np.concatenate(losses)
            kept, self.complete_loss = _least_losses(every, self.complete_loss, self._limit)
            amounts = np.repeat(np.arange(most + 1), [len(some) for some in parents])[kept]
            parent = np.concatenate(parents)[kept]
            modes, rows, lost = modes[parent], rows[parent], every[kept]
            left = left[parent] - amounts * size
            self._steps.append(_Extension(parent, amounts, workload, resources))
        return _Labels(modes, lost)

    def traced(self, modes: Ints) -> Columns:
        """Return the columns of the last labels, traced back to what they contain."""
        state = np.arange(len(modes))
        none = np.zeros(0, np.int64)
        owners, workloads, resources = [none], [none], [none]
        for step in reversed(self._steps):
            amounts = step.amounts[state]
            hit = np.flatnonzero(amounts)
            owners.append(np.repeat(hit, amounts[hit]))
            workloads.append(np.full(len(owners[-1]), step.workload))
            resources.append(step.resource_of_modes[modes[owners[-1]]])
            state = step.parents[state]
        owner, workload, resource = (
            np.concatenate(owners),
            np.concatenate(workloads),
            np.concatenate(resources),
        )
        order = np.lexsort((resource, workload, owner))
        starts = np.searchsorted(owner[order], np.arange(len(modes) + 1))
        return Columns(modes, starts, workload[order], resource[order])


def _most(blocks: BlockProblem, workload: int, capacity: int) -> int:
    """Return how often a resource may take a workload."""
    size, most = (
        int(blocks.sizes[workload]),
        int(min(blocks.most_per_site[workload], blocks.counts[workload])),
    )
    return min(most, capacity // size) if size else most


def _completion_bounds(
    blocks: BlockProblem, profits: Floats, used: Ints, width: int, complete_loss: float
) -> _CompletionBounds:
    """Return completion bounds; a workload that always loses too much has no turn."""
    own = np.where(used >= 0, profits[:, used], -np.inf)
    workloads = np.flatnonzero(
        (own >= -complete_loss - SAME_VALUE).any(axis=1) & (blocks.sizes < width)
    )
    ahead = [np.zeros((len(used), width))]
    for workload in workloads[::-1].tolist():
        best, size = ahead[-1], int(blocks.sizes[workload])
        for _ in range(_most(blocks, workload, width - 1)):
            more = best.copy()
            np.maximum(
                best[:, size:], best[:, : width - size] + own[workload][:, None], out=more[:, size:]
            )
            best = more
        ahead.append(best)
    return _CompletionBounds(workloads.tolist(), list(own[workloads]), ahead[::-1])


def _least_losses(losses: Floats, complete_loss: float, limit: int) -> tuple[Ints, float]:
    """Return the `limit` positions that lose least, and the loss up to which all are kept."""
    kept = np.flatnonzero(losses <= complete_loss + SAME_VALUE)
    if len(kept) <= limit:
        return kept, complete_loss
    order = np.argsort(losses[kept], kind="stable")
    complete_loss = min(complete_loss, float(losses[kept[order[limit]]]) - 2 * SAME_VALUE)
    return np.sort(kept[order[:limit]]), complete_loss


def _without_repeats(blocks: BlockProblem, columns: Columns) -> Columns:
    """Drop the columns in which a workload is on several resources together too often."""
    keys, amounts = np.unique(
        columns.owners * len(blocks.sizes) + columns.workloads, return_counts=True
    )
    over = amounts > blocks.most_per_site[keys % max(1, len(blocks.sizes))]
    kept = np.ones(len(columns), np.bool_)
    kept[keys[over] // max(1, len(blocks.sizes))] = False
    return columns.pick(np.flatnonzero(kept))


def unfixed_variables(
    blocks: BlockProblem, prices: Prices, pricing: PricingResult, slack: float
) -> tuple[Bools, Bools]:
    """Return the assignments [workloads, resources] and modes that lose at most `slack`."""
    lost = pricing.site_profits[blocks.mode_sites] - pricing.mode_profits
    modes: Bools = lost <= slack + SAME_VALUE
    assignments = np.zeros(blocks.values.shape, np.bool_)
    for _, resource, short in _assignment_losses(blocks, prices, pricing, modes):
        assignments[:, resource] |= short <= slack + SAME_VALUE
    return assignments, modes


def losses_by_site(blocks: BlockProblem, prices: Prices, pricing: PricingResult) -> Floats:
    """Return what each site loses at least if it has to take a workload, [workloads, sites]."""
    losses = np.full((len(blocks.sizes), len(blocks.copies)), np.inf)
    every = np.ones(len(blocks.mode_sites), np.bool_)
    for mode, _, short in _assignment_losses(blocks, prices, pricing, every):
        own = losses[:, blocks.mode_sites[mode]]
        np.minimum(own, short, out=own)
    return losses


def _assignment_losses(
    blocks: BlockProblem, prices: Prices, pricing: PricingResult, modes: Bools
) -> Iterator[tuple[int, int, Floats]]:
    """Yield modes, a resource of each, and what taking each workload there loses, [workloads].

    A site that has to take a workload w on resource r in a mode loses at least best_r(c) - best_r(c
    - size_w) - profit_wr more than the mode does, where c is its supply and best_r the knapsack
    table.
    """
    profits = assignment_profits(blocks, prices)
    lost = pricing.site_profits[blocks.mode_sites] - pricing.mode_profits
    for mode, resource, supply in zip(
        blocks.supply_modes.tolist(),
        blocks.supply_resources.tolist(),
        blocks.supply_amounts.tolist(),
        strict=True,
    ):
        if modes[mode]:
            best = pricing.knapsacks.best[resource]
            fits = blocks.sizes <= supply
            left = np.where(fits, supply - blocks.sizes, 0)
            short = lost[mode] + best[supply] - best[left] - profits[:, resource]
            yield mode, resource, np.where(fits, short, np.inf)
