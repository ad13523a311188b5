"""Reduces a problem to blocks with fewer workloads, sites, policies, assignments; equal optimum.

Identical workloads and sites become classes; dominated policies go, and assignments that are
impossible or cannot pay. Rules that the blocks do not contain become linking rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints, members_by_key
from optimizer.domain.solution import Decision
from optimizer.model.allocation import Allocation
from optimizer.model.parameters import NO_DEVICE
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import (
    BlockProblem,
    LinkingRows,
    merge_identical_sites,
    merge_identical_workloads,
)
from optimizer.solve.blocks.columns import Columns, ColumnSelection
from optimizer.solve.blocks.linking_constraints import (
    linking_constraints,
    policies_of_fixed_pools,
    residual_limits,
    serving_assignments,
    with_priority_floors,
)
from optimizer.solve.blocks.sites import (
    CapacityUnits,
    Site,
    capacity_units,
    sites_of,
    undominated_policies,
)


@dataclass(frozen=True, slots=True)
class Reduction:
    """Blocks, and the members of their classes: `workloads` and equal `sites`, by class."""

    blocks: BlockProblem
    workloads: tuple[Ints, ...]
    sites: tuple[tuple[Site, ...], ...]

    def decision(self, problem: Problem, selection: ColumnSelection) -> Decision:
        """Return columns as a decision; of equal sites and workloads the first are taken first."""
        policies, columns, times = list[int](), selection.columns, selection.multiplicities
        placed: list[list[tuple[int, int]]] = [[] for _ in self.workloads]
        used = [0] * len(self.sites)
        first_mode, first_resource = self.blocks.first_modes, self.blocks.first_resources
        for index in np.repeat(np.arange(len(columns)), times).tolist():
            kind = int(self.blocks.mode_sites[columns.modes[index]])
            site = self.sites[kind][used[kind]]
            used[kind] += 1
            policies.extend(site.modes[int(columns.modes[index] - first_mode[kind])])
            for at in range(int(columns.starts[index]), int(columns.starts[index + 1])):
                resource = site.resources[int(columns.resources[at] - first_resource[kind])]
                placed[int(columns.workloads[at])].append((site.cluster, resource))
        # Members take turns in the order of clusters, so none gets two assignments on one cluster.
        pairs = (
            (int(members[position % len(members)]), resource)
            for members, own in zip(self.workloads, placed, strict=True)
            for position, (_, resource) in enumerate(sorted(own))
        )
        return problem.named(policies, pairs)

    def columns(self, problem: Problem, decision: Decision) -> ColumnSelection:
        """Return a decision as columns and how often each is taken, as far as blocks contain it."""
        policies, pairs = problem.numbered(decision)
        chosen = set(policies)
        class_of = {
            workload: kind for kind, own in enumerate(self.workloads) for workload in own.tolist()
        }
        by_resource = members_by_key((resource, class_of[item]) for item, resource in pairs)
        first_mode, first_resource = self.blocks.first_modes, self.blocks.first_resources
        met: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        for kind, own in enumerate(self.sites):
            for site in own:
                mine = chosen & {policy for mode in site.modes for policy in mode}
                modes = [at for at, mode in enumerate(site.modes) if set(mode) == mine]
                assignments = sorted(
                    (workload, int(first_resource[kind]) + at)
                    for at, resource in enumerate(site.resources)
                    for workload in by_resource.get(resource, ())
                    if self.blocks.values[workload, first_resource[kind] + at] > -np.inf
                )
                if modes and assignments:
                    key = int(first_mode[kind]) + modes[0], tuple(assignments)
                    met[key] = met.get(key, 0) + 1
        lengths = [len(assignments) for _, assignments in met]
        pairs = [pair for _, assignments in met for pair in assignments]
        columns = Columns(
            np.array([mode for mode, _ in met], np.int64),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            np.array([workload for workload, _ in pairs], np.int64),
            np.array([resource for _, resource in pairs], np.int64),
        )
        return ColumnSelection(columns, np.array(list(met.values()), np.int64))

    def spread(self, assignments: Bools, modes: Bools, problem: Problem) -> tuple[Bools, Bools]:
        """Return flags over assignments and modes of the blocks as flags over the problem's.

        The result is two arrays: [workloads, resources] and [policies].
        """
        wanted = np.zeros(problem.values.shape, np.bool_)
        policies = np.zeros(len(problem.policies), np.bool_)
        first_mode, first_resource = self.blocks.first_modes, self.blocks.first_resources
        classes = np.repeat(np.arange(len(self.workloads)), [len(own) for own in self.workloads])
        members = np.concatenate(self.workloads)
        for kind, own in enumerate(self.sites):
            inside = assignments[classes, first_resource[kind] : first_resource[kind + 1]]
            chosen = np.flatnonzero(modes[first_mode[kind] : first_mode[kind + 1]])
            for site in own:
                wanted[np.ix_(members, np.array(site.resources))] = inside
                for mode in chosen.tolist():
                    policies[list(site.modes[mode])] = True
        return wanted, policies


def tier_weights(problem: Problem, tier: int) -> tuple[Floats, float]:
    """Return the weights of workloads, and of policies, in a tier."""
    return (problem.workload_tier == tier).astype(np.float64), float(tier == len(problem.tiers) - 1)


def reduce_to_blocks(
    problem: Problem,
    weights: Floats,
    policy_weight: float = 1.0,
    fixed: Allocation | None = None,
    *,
    floors: Sequence[float] = (),
    unfixed: tuple[Bools, Bools] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Reduction | None:
    """Return the blocks of a problem; None where a site has too many modes, or `stop` returns True.

    `weights` [workloads]: the weight of each workload's values; `policy_weight`: that of policies.
    `fixed`: decisions that stay; the blocks are the rest. `floors`: values that the first tiers
    keep. `unfixed`: assignments and policies that may be used.
    """
    units = capacity_units(problem)
    kinds = {resource.kind for resource in problem.resources}
    linking = linking_constraints(problem, frozenset(kinds - units.exact))
    if floors:
        linking = with_priority_floors(problem, linking, floors)
    values = problem.values * weights[:, None]
    dropped = np.isnan(values)
    # A workload of weight 0 matters only where it helps to satisfy a linking row.
    dropped |= ((values < 0) | (weights == 0)[:, None]) & ~serving_assignments(
        linking, values.shape
    )
    if stop():
        return None
    policies = undominated_policies(problem, frozenset(linking.choices.tolist()))
    if unfixed is not None:
        dropped |= ~unfixed[0]
        policies &= frozenset(np.flatnonzero(unfixed[1]).tolist())
    if fixed is not None:
        linking = residual_limits(fixed, linking)
        dropped[[workload for workload, _ in fixed.pairs]] = True
        policies -= policies_of_fixed_pools(fixed)
        problem = replace(problem, base=fixed.residual)
    values[dropped] = -np.inf
    # Resources without a device still supply the extra kinds of requests.
    extras = {kind for workload in problem.workloads for kind, _ in workload.requests}
    shared = [
        resource.kind in extras and resource.device == NO_DEVICE for resource in problem.resources
    ]
    needed = np.flatnonzero(~dropped.all(axis=0) | np.array(shared, np.bool_)).tolist()
    sites = sites_of(
        problem, {resource: problem.resources[resource].cluster for resource in needed}, policies
    )
    if not sites or stop():
        return None
    single, by_size = _unmerged(problem, sites, values, units, linking, policy_weight)
    if stop():
        return None
    blocks, members = merge_identical_workloads(single)
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
    linking: LinkingRows,
    policy_weight: float,
) -> tuple[BlockProblem, Ints]:
    """Return the blocks before merging, and the workload of each row of values."""
    order = np.array([resource for site in sites for resource in site.resources], np.int64)
    modes = [mode for site in sites for mode in site.modes]
    supplies = _supplies(
        problem, sites, {resource: at for at, resource in enumerate(order.tolist())}, units
    )
    sizes = np.array(
        [units.demand(workload.kind, workload.amount) for workload in problem.workloads], np.int64
    )
    by_size = np.argsort(sizes, kind="stable")
    most = np.full(len(order), -1)
    np.maximum.at(most, supplies[:, 1], supplies[:, 2])
    chosen = values[np.ix_(by_size, order)]
    chosen[sizes[by_size][:, None] > most[None, :]] = -np.inf
    costs = [policy_weight * sum(problem.policies[o].value for o in mode) for mode in modes]
    blocks = BlockProblem(
        values=chosen,
        sizes=sizes[by_size],
        counts=np.array([workload.replicas for workload in problem.workloads], np.int64)[by_size],
        most_per_site=np.ones(len(sizes), np.int64),
        resource_sites=np.repeat(np.arange(len(sites)), [len(site.resources) for site in sites]),
        copies=np.ones(len(sites), np.int64),
        mode_sites=np.repeat(np.arange(len(sites)), [len(site.modes) for site in sites]),
        mode_values=np.array(costs, np.float64),
        supply_modes=supplies[:, 0],
        supply_resources=supplies[:, 1],
        supply_amounts=supplies[:, 2],
        linking=_rows(problem, linking, by_size, order, modes),
    )
    return blocks, by_size


def _supplies(
    problem: Problem, sites: Sequence[Site], at: dict[int, int], units: CapacityUnits
) -> Ints:
    """Return (mode, resource, units) for every mode and resource of its site, [supplies, 3]."""
    found: list[tuple[int, int, int]] = []
    mode_number = 0
    for site in sites:
        for mode in site.modes:
            supplied = {
                resource: float(problem.base[resource])
                for resource in site.resources
                if problem.base[resource] > 0
            }
            for policy in mode:
                for resource, amount in problem.policies[policy].supplies:
                    if resource in at:
                        supplied[resource] = supplied.get(resource, 0.0) + amount
            # A resource that is supplied with 0 exists: a workload of size 0 runs there.
            found += [
                (mode_number, at[resource], units.supply(problem.resources[resource].kind, amount))
                for resource, amount in supplied.items()
            ]
            mode_number += 1
    return np.array(found, np.int64).reshape(-1, 3)


def _rows(
    problem: Problem, linking: LinkingRows, by_size: Ints, order: Ints, modes: list[tuple[int, ...]]
) -> LinkingRows:
    """Return the linking rows in the numbers of the blocks, without assignments that are gone."""
    resource_at = np.full(len(problem.resources), -1, np.int64)
    resource_at[order] = np.arange(len(order))
    by_policy = members_by_key(
        (policy, mode) for mode, policies in enumerate(modes) for policy in policies
    )
    own = [by_policy.get(policy, []) for policy in linking.choices.tolist()]
    entries, every = np.repeat(np.arange(len(own)), [len(some) for some in own]), max(len(modes), 1)
    of_modes = replace(
        linking,
        choice_rows=linking.choice_rows[entries],
        choices=np.array([mode for some in own for mode in some], np.int64),
        choice_coefficients=linking.choice_coefficients[entries],
    )
    return of_modes.renumbered(linking.limits, np.argsort(by_size), resource_at, np.arange(every))
