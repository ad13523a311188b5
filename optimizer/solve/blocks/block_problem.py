"""The problem as blocks that only the number of a task's places and further rows hold together.

A site is the part of a cluster whose policies share slots; its modes are the combinations of
policies that it may enforce. Given prices for the tasks, a site is solved alone: a knapsack for
each slot and supply, then the best mode.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LinkingRows:
    """Further rows: the sum of coefficient x places and modes is at most `limits`.

    Entries of places are (row, task, slot, coefficient), those of modes (row, mode, coefficient).
    """

    limits: Floats
    place_rows: Ints
    place_tasks: Ints
    place_slots: Ints
    place_coefficients: Floats
    mode_rows: Ints
    mode_modes: Ints
    mode_coefficients: Floats


@dataclass(frozen=True, slots=True)
class BlockProblem:
    """Classes of tasks and classes of sites.

    `values`: [task, slot], -inf where a task has no place; tasks ascend by size. `sizes`,
    `counts`: what one place of a task takes of its slot, and how many places it has at most.
    `most`: its places on one site at most. `slot_sites`: the site of each slot. `copies`: how many
    equal sites there are of each. `mode_sites`: the site of each mode, ascending; every site has a
    mode worth 0 that supplies what it has without a policy. `mode_values`: what taking the mode
    adds to the objective. `part_modes`, `part_slots`, `part_supplies`: what the modes supply,
    ascending by mode.
    """

    values: Floats
    sizes: Ints
    counts: Ints
    most: Ints
    slot_sites: Ints
    copies: Ints
    mode_sites: Ints
    mode_values: Floats
    supply_modes: Ints
    supply_slots: Ints
    supply_amounts: Ints
    rows: LinkingRows

    @property
    def largest(self) -> int:
        """The largest supply of a slot."""
        return int(self.supply_amounts.max(initial=0))

    @property
    def whole(self) -> bool:
        """Whether every decision is worth a whole number."""
        return bool((self.mode_values == np.floor(self.mode_values)).all()) and all(
            bool((row == np.floor(row)).all()) for row in self.values
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """Multipliers, none negative: of a place of each task, and of each further row."""

    tasks: Floats
    rows: Floats


@dataclass(frozen=True, slots=True)
class Subproblem:
    """Some sites and tasks of a problem as a problem of its own, and what they are called there."""

    blocks: BlockProblem
    tasks: Ints
    slots: Ints
    sites: Ints
    modes: Ints


def residual_subproblem(
    blocks: BlockProblem, copies: Ints, counts: Ints, limits: Floats
) -> Subproblem:
    """Return the problem on what is left of copies of sites, counts of tasks, limits of rows."""
    return subproblem_of(blocks, counts > 0, copies, counts, limits)


def subproblem_of(
    blocks: BlockProblem, kept_tasks: Flags, copies: Ints, counts: Ints, limits: Floats
) -> Subproblem:
    """Return the problem on some tasks and on the sites of which there are copies."""
    kept_sites = copies > 0
    tasks, sites = np.flatnonzero(kept_tasks), np.flatnonzero(kept_sites)
    slots = np.flatnonzero(kept_sites[blocks.slot_sites])
    modes = np.flatnonzero(kept_sites[blocks.mode_sites])
    supplies = kept_sites[blocks.mode_sites[blocks.supply_modes]]
    task_at, slot_at = _positions(kept_tasks), _positions(kept_sites[blocks.slot_sites])
    site_at, mode_at = _positions(kept_sites), _positions(kept_sites[blocks.mode_sites])
    rows = blocks.rows
    places = kept_tasks[rows.place_tasks] & (slot_at[rows.place_slots] >= 0)
    chosen = mode_at[rows.mode_modes] >= 0
    return Subproblem(
        BlockProblem(
            values=blocks.values[np.ix_(tasks, slots)],
            sizes=blocks.sizes[tasks],
            counts=counts[tasks],
            most=blocks.most[tasks],
            slot_sites=site_at[blocks.slot_sites[slots]],
            copies=copies[sites],
            mode_sites=site_at[blocks.mode_sites[modes]],
            mode_values=blocks.mode_values[modes],
            supply_modes=mode_at[blocks.supply_modes[supplies]],
            supply_slots=slot_at[blocks.supply_slots[supplies]],
            supply_amounts=blocks.supply_amounts[supplies],
            rows=LinkingRows(
                limits,
                rows.place_rows[places],
                task_at[rows.place_tasks[places]],
                slot_at[rows.place_slots[places]],
                rows.place_coefficients[places],
                rows.mode_rows[chosen],
                mode_at[rows.mode_modes[chosen]],
                rows.mode_coefficients[chosen],
            ),
        ),
        tasks,
        slots,
        sites,
        modes,
    )


def _positions(kept: Flags) -> Ints:
    """Return the new index of what is kept, -1 elsewhere."""
    return np.where(kept, np.cumsum(kept) - 1, -1)
