"""From a problem to blocks: fewer tasks, sites, options and places, and the same optimum.

Equal tasks become one class with a count, equal sites likewise; options that another replaces at
no loss go, and places that are impossible or not worth having. Rules that are not built into
blocks become further rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.problem import NO_DEVICE, Problem
from optimizer.solve.blocks.block_problem import BlockProblem, Flags, Floats, Ints, LinkingRows
from optimizer.solve.blocks.capacity_units import CapacityUnits, capacity_units
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.blocks.fixed_priorities import FixedPriorities
from optimizer.solve.blocks.identical_classes import merge_identical_sites, merge_identical_tasks
from optimizer.solve.blocks.linking_constraints import (
    LinkingConstraints,
    linking_constraints,
    with_priority_floors,
)
from optimizer.solve.blocks.sites import Site, sites_of, undominated_options


@dataclass(frozen=True, slots=True)
class Reduction:
    """Blocks, and what their classes stand for: tasks, and equal sites in order."""

    blocks: BlockProblem
    tasks: tuple[Ints, ...]
    sites: tuple[tuple[Site, ...], ...]

    def decision(self, problem: Problem, columns: Columns, times: Ints) -> Decision:
        """Spread columns back over the sites and tasks, the first of equal ones first."""
        options: list[int] = []
        placed: list[list[tuple[int, int]]] = [[] for _ in self.tasks]
        used = [0] * len(self.sites)
        first_mode = np.searchsorted(self.blocks.mode_sites, np.arange(len(self.sites)))
        first_slot = np.searchsorted(self.blocks.slot_sites, np.arange(len(self.sites)))
        for index in np.repeat(np.arange(len(columns)), times).tolist():
            kind = int(self.blocks.mode_sites[columns.modes[index]])
            site = self.sites[kind][used[kind]]
            used[kind] += 1
            options.extend(site.modes[int(columns.modes[index] - first_mode[kind])])
            for at in range(int(columns.starts[index]), int(columns.starts[index + 1])):
                slot = site.slots[int(columns.slots[at] - first_slot[kind])]
                placed[int(columns.tasks[at])].append((site.cluster, slot))
        # In the order of clusters, so that no task gets two places on one of them.
        pairs = sorted(
            (int(members[position % len(members)]), slot)
            for members, own in zip(self.tasks, placed, strict=True)
            for position, (_, slot) in enumerate(sorted(own))
        )
        return Decision(
            tuple(problem.enforcement(option) for option in sorted(options)),
            tuple(problem.assignment(task, slot) for task, slot in pairs),
        )

    def columns(self, problem: Problem, decision: Decision) -> tuple[Columns, Ints]:
        """Return a decision as columns and how often each is taken, as far as blocks have it."""
        chosen = {problem.policy_index[choice] for choice in decision.policies}
        by_slot: dict[int, list[int]] = {}
        class_of = {task: kind for kind, own in enumerate(self.tasks) for task in own.tolist()}
        for place in decision.assignments:
            if (pair := problem.indexes(place)) is not None:
                by_slot.setdefault(pair[1], []).append(class_of[pair[0]])
        first_mode = np.searchsorted(self.blocks.mode_sites, np.arange(len(self.sites)))
        first_slot = np.searchsorted(self.blocks.slot_sites, np.arange(len(self.sites)))
        met: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        for kind, own in enumerate(self.sites):
            for site in own:
                mine = chosen & {option for mode in site.modes for option in mode}
                modes = [at for at, mode in enumerate(site.modes) if set(mode) == mine]
                places = sorted(
                    (task, int(first_slot[kind]) + at)
                    for at, slot in enumerate(site.slots)
                    for task in by_slot.get(slot, ())
                    if self.blocks.values[task, first_slot[kind] + at] > -np.inf
                )
                if modes and places:
                    key = int(first_mode[kind]) + modes[0], tuple(places)
                    met[key] = met.get(key, 0) + 1
        lengths = [len(places) for _, places in met]
        pairs = [pair for _, places in met for pair in places]
        return Columns(
            np.array([mode for mode, _ in met], np.int64),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            np.array([task for task, _ in pairs], np.int64),
            np.array([slot for _, slot in pairs], np.int64),
        ), np.array(list(met.values()), np.int64)

    def spread(self, places: Flags, modes: Flags, problem: Problem) -> tuple[Flags, Flags]:
        """Return which places [tasks, slots] and options of the problem such places stand for."""
        wanted = np.zeros(problem.values.shape, np.bool_)
        options = np.zeros(len(problem.policies), np.bool_)
        blocks = self.blocks
        first_mode = np.searchsorted(blocks.mode_sites, np.arange(len(self.sites) + 1))
        first_slot = np.searchsorted(blocks.slot_sites, np.arange(len(self.sites) + 1))
        classes = np.repeat(np.arange(len(self.tasks)), [len(own) for own in self.tasks])
        members = np.concatenate(self.tasks)
        for kind, own in enumerate(self.sites):
            inside = places[classes, first_slot[kind] : first_slot[kind + 1]]
            chosen = np.flatnonzero(modes[first_mode[kind] : first_mode[kind + 1]])
            for site in own:
                wanted[np.ix_(members, np.array(site.slots))] = inside
                for mode in chosen.tolist():
                    options[list(site.modes[mode])] = True
        return wanted, options


def reduce_to_blocks(
    problem: Problem,
    weights: Floats,
    option_weight: float = 1.0,
    settled: FixedPriorities | None = None,
    *,
    kept: Sequence[float] = (),
    usable: tuple[Flags, Flags] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Reduction | None:
    """Return the blocks of a problem; None where it does not fall apart well enough.

    `weights` [tasks]: what each task's values count for; `option_weight`: what those of options do.
    `settled`: decided already, the blocks are what is left. `kept`: values that the first tiers
    must have. None too where `stop` says so.
    """
    units = capacity_units(problem)
    kinds = {slot.kind for slot in problem.resources}
    further = linking_constraints(problem, frozenset(kinds - units.exact))
    if kept:
        further = with_priority_floors(problem, further, kept)
    values = problem.values * weights[:, None]
    dropped = np.isnan(values)
    # A task that counts for nothing here is there for the rules alone.
    dropped |= ((values < 0) | (weights == 0)[:, None]) & ~further.wanted(values.shape)
    if stop():
        return None
    options = undominated_options(problem, further.options)
    if usable is not None:
        dropped |= ~usable[0]
        options &= frozenset(np.flatnonzero(usable[1]).tolist())
    if settled is not None:
        further = settled.rows(problem, further)
        dropped[settled.tasks] = True
        options -= settled.pools(problem)
        problem = replace(problem, base=settled.base(problem))
    values[dropped] = -np.inf
    # Slots on which nothing runs by itself still supply what requests take besides.
    extras = {kind for task in problem.workloads for kind, _ in task.extras}
    shared = [slot.kind in extras and slot.device == NO_DEVICE for slot in problem.resources]
    needed = np.flatnonzero(~dropped.all(axis=0) | np.array(shared, np.bool_)).tolist()
    sites = sites_of(
        problem,
        {slot: problem.resources[slot].cluster for slot in needed},
        options,
    )
    if not sites or stop():
        return None
    single, by_size = _unmerged(problem, sites, values, units, further, option_weight)
    if stop():
        return None
    blocks, members = merge_identical_tasks(single)
    if stop():
        return None
    blocks, equal = merge_identical_sites(blocks)
    return Reduction(
        blocks,
        tuple(by_size[own] for own in members),
        tuple(tuple(sites[site] for site in own.tolist()) for own in equal),
    )


def _unmerged(
    problem: Problem,
    sites: Sequence[Site],
    values: Floats,
    units: CapacityUnits,
    further: LinkingConstraints,
    option_weight: float,
) -> tuple[BlockProblem, Ints]:
    """Return blocks of every task and site by itself, and the task of each row of values."""
    order = np.array([slot for site in sites for slot in site.slots], np.int64)
    modes = [mode for site in sites for mode in site.modes]
    supplies = _supplies(
        problem, sites, {slot: at for at, slot in enumerate(order.tolist())}, units
    )
    sizes = np.array([units.demand(task.kind, task.amount) for task in problem.workloads], np.int64)
    by_size = np.argsort(sizes, kind="stable")
    most = np.full(len(order), -1)
    np.maximum.at(most, supplies[:, 1], supplies[:, 2])
    chosen = values[np.ix_(by_size, order)]
    chosen[sizes[by_size][:, None] > most[None, :]] = -np.inf
    costs = [option_weight * sum(problem.policies[o].value for o in mode) for mode in modes]
    blocks = BlockProblem(
        values=chosen,
        sizes=sizes[by_size],
        counts=np.array([task.replicas for task in problem.workloads], np.int64)[by_size],
        most=np.ones(len(sizes), np.int64),
        slot_sites=np.repeat(np.arange(len(sites)), [len(site.slots) for site in sites]),
        copies=np.ones(len(sites), np.int64),
        mode_sites=np.repeat(np.arange(len(sites)), [len(site.modes) for site in sites]),
        mode_values=np.array(costs, np.float64),
        supply_modes=supplies[:, 0],
        supply_slots=supplies[:, 1],
        supply_amounts=supplies[:, 2],
        rows=_rows(problem, further, by_size, order, modes),
    )
    return blocks, by_size


def _supplies(
    problem: Problem, sites: Sequence[Site], at: dict[int, int], units: CapacityUnits
) -> Ints:
    """Return (mode, slot, supply) of every mode and slot of its site."""
    found: list[tuple[int, int, int]] = []
    mode_number = 0
    for site in sites:
        for mode in site.modes:
            supplied = {
                slot: float(problem.base[slot]) for slot in site.slots if problem.base[slot] > 0
            }
            for option in mode:
                for slot, amount in problem.policies[option].supplies:
                    if slot in at:
                        supplied[slot] = supplied.get(slot, 0.0) + amount
            # A slot supplied with 0 exists: a task of size 0 runs there.
            found += [
                (mode_number, at[slot], units.supply(problem.resources[slot].kind, amount))
                for slot, amount in supplied.items()
            ]
            mode_number += 1
    return np.array(found, np.int64).reshape(-1, 3)


def _rows(
    problem: Problem,
    further: LinkingConstraints,
    by_size: Ints,
    order: Ints,
    modes: list[tuple[int, ...]],
) -> LinkingRows:
    """Return the further rows in the numbers of the blocks; places that are gone are left out."""
    task_at = np.argsort(by_size)
    slot_at = np.full(len(problem.resources), -1, np.int64)
    slot_at[order] = np.arange(len(order))
    inside = slot_at[further.place_slots] >= 0
    by_option: dict[int, list[int]] = {}
    for mode, options in enumerate(modes):
        for option in options:
            by_option.setdefault(option, []).append(mode)
    entries = [
        (row, mode, coefficient)
        for row, option, coefficient in zip(
            further.option_rows.tolist(),
            further.option_numbers.tolist(),
            further.option_coefficients.tolist(),
            strict=True,
        )
        for mode in by_option.get(option, ())
    ]
    return LinkingRows(
        np.array(further.limits, np.float64),
        further.place_rows[inside],
        task_at[further.place_tasks[inside]],
        slot_at[further.place_slots[inside]],
        further.place_coefficients[inside],
        np.array([row for row, _, _ in entries], np.int64),
        np.array([mode for _, mode, _ in entries], np.int64),
        np.array([coefficient for _, _, coefficient in entries], np.float64),
    )
