"""Equal tasks as one class with a count, equal sites as one with copies."""

from collections.abc import Hashable, Iterable
from dataclasses import replace

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Ints, subproblem_of


def merge_identical_tasks(blocks: BlockProblem) -> tuple[BlockProblem, tuple[Ints, ...]]:
    """Merge equal tasks; also return the members of each class, in order."""
    rows = blocks.rows
    entries = _entries(rows.place_tasks, len(blocks.sizes))
    keys = (
        (
            int(blocks.sizes[task]),
            int(blocks.counts[task]),
            blocks.values[task].tobytes(),
            rows.place_rows[entries[task]].tobytes(),
            rows.place_slots[entries[task]].tobytes(),
            rows.place_coefficients[entries[task]].tobytes(),
        )
        for task in range(len(blocks.sizes))
    )
    members = _members(keys)
    if len(members) == len(blocks.sizes):
        return blocks, members
    first = np.array([own[0] for own in members], np.int64)
    kept, at = _kept(first, len(blocks.sizes))
    places = kept[rows.place_tasks]
    merged = replace(
        blocks,
        values=blocks.values[first],
        sizes=blocks.sizes[first],
        counts=np.array([blocks.counts[own].sum() for own in members], np.int64),
        most=np.array([blocks.most[own].sum() for own in members], np.int64),
        rows=replace(
            rows,
            place_rows=rows.place_rows[places],
            place_tasks=at[rows.place_tasks[places]],
            place_slots=rows.place_slots[places],
            place_coefficients=rows.place_coefficients[places],
        ),
    )
    return merged, members


def merge_identical_sites(blocks: BlockProblem) -> tuple[BlockProblem, tuple[Ints, ...]]:
    """Merge equal sites; also return the members of each class, in order."""
    members = _members(_site_keys(blocks))
    if len(members) == len(blocks.copies):
        return blocks, members
    copies = np.zeros(len(blocks.copies), np.int64)
    copies[[own[0] for own in members]] = [blocks.copies[own].sum() for own in members]
    every_task = np.ones(len(blocks.sizes), np.bool_)
    merged = subproblem_of(blocks, every_task, copies, blocks.counts, blocks.rows.limits).blocks
    return merged, members


def _site_keys(blocks: BlockProblem) -> Iterable[Hashable]:
    sites, rows = len(blocks.copies), blocks.rows
    first_slot = np.searchsorted(blocks.slot_sites, np.arange(sites + 1))
    first_mode = np.searchsorted(blocks.mode_sites, np.arange(sites + 1))
    first_part = np.searchsorted(blocks.supply_modes, first_mode)
    places = _entries(blocks.slot_sites[rows.place_slots], sites)
    chosen = _entries(blocks.mode_sites[rows.mode_modes], sites)
    for site in range(sites):
        slots = slice(first_slot[site], first_slot[site + 1])
        modes = slice(first_mode[site], first_mode[site + 1])
        parts = slice(first_part[site], first_part[site + 1])
        mine, ours = places[site], chosen[site]
        yield (
            blocks.values[:, slots].tobytes(),
            blocks.mode_values[modes].tobytes(),
            (blocks.supply_modes[parts] - first_mode[site]).tobytes(),
            (blocks.supply_slots[parts] - first_slot[site]).tobytes(),
            blocks.supply_amounts[parts].tobytes(),
            rows.place_rows[mine].tobytes(),
            rows.place_tasks[mine].tobytes(),
            (rows.place_slots[mine] - first_slot[site]).tobytes(),
            rows.place_coefficients[mine].tobytes(),
            rows.mode_rows[ours].tobytes(),
            (rows.mode_modes[ours] - first_mode[site]).tobytes(),
            rows.mode_coefficients[ours].tobytes(),
        )


def _members(keys: Iterable[Hashable]) -> tuple[Ints, ...]:
    # Python's own hash of bytes differs from run to run; the order of a dict does not.
    found: dict[int, list[int]] = {}
    firsts: dict[Hashable, int] = {}
    for index, key in enumerate(keys):
        found.setdefault(firsts.setdefault(key, index), []).append(index)
    return tuple(np.array(own, np.int64) for own in found.values())


def _entries(owners: Ints, count: int) -> list[Ints]:
    """Return, for every owner, the positions of its entries."""
    order = np.argsort(owners, kind="stable")
    cuts = np.searchsorted(owners[order], np.arange(1, count))
    return np.split(order, cuts) if count else []


def _kept(chosen: Ints, count: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Ints]:
    kept = np.zeros(count, np.bool_)
    kept[chosen] = True
    at = np.full(count, -1, np.int64)
    at[chosen] = np.arange(len(chosen))
    return kept, at
