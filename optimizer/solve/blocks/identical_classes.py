"""Merges identical workloads into a class with a count, identical sites into one with copies.

This removes the symmetry between them, which would make branching repeat itself. Two are identical
where their entries in all arrays of the reduced problem are equal, so any two can be swapped.
`model.symmetry` says why its keys do not answer this.
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace

import numpy as np

from optimizer.domain.arrays import Ints
from optimizer.model.symmetry import classes
from optimizer.solve.blocks.block_problem import BlockProblem, entries_by_owner, subproblem_of


def merge_identical_workloads(blocks: BlockProblem) -> tuple[BlockProblem, tuple[Ints, ...]]:
    """Return the problem with identical workloads merged, and the members of each class."""
    rows = blocks.linking
    entries = entries_by_owner(rows.assignment_workloads, len(blocks.sizes))
    keys = (
        (
            int(blocks.sizes[workload]),
            int(blocks.counts[workload]),
            blocks.values[workload].tobytes(),
            rows.assignment_rows[entries[workload]].tobytes(),
            rows.assignment_resources[entries[workload]].tobytes(),
            rows.assignment_coefficients[entries[workload]].tobytes(),
        )
        for workload in range(len(blocks.sizes))
    )
    members = _members(keys)
    if len(members) == len(blocks.sizes):
        return blocks, members
    first = np.array([own[0] for own in members], np.int64)
    at = np.full(len(blocks.sizes), -1, np.int64)
    at[first] = np.arange(len(first))
    same = np.arange(max(len(blocks.resource_sites), len(blocks.mode_sites)))
    merged = replace(
        blocks,
        values=blocks.values[first],
        sizes=blocks.sizes[first],
        counts=np.array([blocks.counts[own].sum() for own in members], np.int64),
        most_per_site=np.array([blocks.most_per_site[own].sum() for own in members], np.int64),
        linking=rows.renumbered(rows.limits, at, same, same),
    )
    return merged, members


def merge_identical_sites(blocks: BlockProblem) -> tuple[BlockProblem, tuple[Ints, ...]]:
    """Return the problem with identical sites merged, and the members of each class, ascending."""
    members = _members(_site_keys(blocks))
    if len(members) == len(blocks.copies):
        return blocks, members
    copies = np.zeros(len(blocks.copies), np.int64)
    copies[[own[0] for own in members]] = [blocks.copies[own].sum() for own in members]
    every_workload = np.ones(len(blocks.sizes), np.bool_)
    merged = subproblem_of(
        blocks, every_workload, copies, blocks.counts, blocks.linking.limits
    ).blocks
    return merged, members


def _site_keys(blocks: BlockProblem) -> Iterable[Hashable]:
    sites, rows = len(blocks.copies), blocks.linking
    first_resource, first_mode = blocks.first_resources, blocks.first_modes
    first_part = np.searchsorted(blocks.supply_modes, first_mode)
    assignments = entries_by_owner(blocks.resource_sites[rows.assignment_resources], sites)
    chosen = entries_by_owner(blocks.mode_sites[rows.choices], sites)
    for site in range(sites):
        resources = slice(first_resource[site], first_resource[site + 1])
        modes = slice(first_mode[site], first_mode[site + 1])
        parts = slice(first_part[site], first_part[site + 1])
        mine, ours = assignments[site], chosen[site]
        yield (
            blocks.values[:, resources].tobytes(),
            blocks.mode_values[modes].tobytes(),
            (blocks.supply_modes[parts] - first_mode[site]).tobytes(),
            (blocks.supply_resources[parts] - first_resource[site]).tobytes(),
            blocks.supply_amounts[parts].tobytes(),
            rows.assignment_rows[mine].tobytes(),
            rows.assignment_workloads[mine].tobytes(),
            (rows.assignment_resources[mine] - first_resource[site]).tobytes(),
            rows.assignment_coefficients[mine].tobytes(),
            rows.choice_rows[ours].tobytes(),
            (rows.choices[ours] - first_mode[site]).tobytes(),
            rows.choice_coefficients[ours].tobytes(),
        )


def _members(keys: Iterable[Hashable]) -> tuple[Ints, ...]:
    return tuple(np.array(own, np.int64) for own in classes(dict(enumerate(keys))))
