"""The block-angular form of a problem: sites are blocks, linked by replicas and linking rows.

A site is the part of a cluster whose policies share resources; its modes are the combinations of
policies that it may enforce. With x_j the number of sites that take column j (a mode and the
assignments that fill it), the problem is the Dantzig-Wolfe master

    maximise    sum_j value_j x_j
    subject to  sum_{j of site s} x_j               <= copies_s     every class of sites s
                sum_j assignments_jw x_j            <= counts_w     every class of workloads w
                sum_j coefficient_rj x_j            <= limit_r      every linking row r
                x_j >= 0 and whole

G. B. Dantzig, P. Wolfe, "Decomposition principle for linear programs", Operations Research 8
(1960).
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.model.symmetry import classes


@dataclass(frozen=True, slots=True)
class LinkingRows:
    """Linking rows: the sum of coefficient times variables is at most `limits` [rows].

    Entries of assignments are (row, workload, resource, coefficient). A choice is a policy of a
    problem or a mode of its blocks; entries are (row, choice, coefficient). Arrays of a kind of
    entry have equal length. `says` [rows]: each row's rule for a person.
    """

    limits: Floats
    assignment_rows: Ints
    assignment_workloads: Ints
    assignment_resources: Ints
    assignment_coefficients: Floats
    choice_rows: Ints
    choices: Ints
    choice_coefficients: Floats
    says: tuple[str, ...]

    def renumbered(
        self, limits: Floats, workloads: Ints, resources: Ints, choices: Ints
    ) -> "LinkingRows":
        """Return the rows in other numbers; entries of what has the number -1 are left out."""
        workload = workloads[self.assignment_workloads]
        resource = resources[self.assignment_resources]
        kept, chosen = (workload >= 0) & (resource >= 0), choices[self.choices] >= 0
        return LinkingRows(
            limits,
            self.assignment_rows[kept],
            workload[kept],
            resource[kept],
            self.assignment_coefficients[kept],
            self.choice_rows[chosen],
            choices[self.choices[chosen]],
            self.choice_coefficients[chosen],
            self.says,
        )

    def with_row(
        self, says: str, limit: float, workloads: Ints, resources: Ints, coefficients: Floats
    ) -> "LinkingRows":
        """Return the rows with one more, of assignments, after the others."""
        limits, rows = np.array([limit]), np.full(len(workloads), len(self.limits))
        return replace(
            self,
            says=(*self.says, says),
            limits=np.concatenate([self.limits, limits]),
            assignment_rows=np.concatenate([self.assignment_rows, rows]),
            assignment_workloads=np.concatenate([self.assignment_workloads, workloads]),
            assignment_resources=np.concatenate([self.assignment_resources, resources]),
            assignment_coefficients=np.concatenate([self.assignment_coefficients, coefficients]),
        )

    def used(self, assignments: Floats, choices: Floats) -> Floats:
        """Return the sum of each row, [rows].

        `assignments` [workloads, resources] and `choices` [choices]: how often each is taken.
        """
        taken = assignments[self.assignment_workloads, self.assignment_resources]
        by_assignment = self.assignment_coefficients * taken
        by_choice = self.choice_coefficients * choices[self.choices]
        size = len(self.limits)
        used: Floats = np.bincount(self.assignment_rows, by_assignment, size).astype(np.float64)
        return used + np.bincount(self.choice_rows, by_choice, size)


@dataclass(frozen=True, slots=True)
class BlockProblem:
    """Classes of workloads and classes of sites; numbers are positions in these arrays.

    `values` [workloads, resources]: objective units, -inf where a workload can't run; workloads
    ascend by size. `sizes` [workloads]: capacity units that one assignment takes. `counts`
    [workloads]: how many assignments a class has at most, `most_per_site` [workloads]: on one site.
    `resource_sites` [resources]: the site of each resource. `copies` [sites]: how many equal sites
    there are. `mode_sites` [modes]: the site of each mode, ascending; every site has a mode of
    value 0 that supplies what the site has without a policy. `mode_values` [modes]: what a mode
    adds to the objective. `supply_modes`, `supply_resources`, `supply_amounts`: what modes supply,
    in capacity units, ascending by mode.
    """

    values: Floats
    sizes: Ints
    counts: Ints
    most_per_site: Ints
    resource_sites: Ints
    copies: Ints
    mode_sites: Ints
    mode_values: Floats
    supply_modes: Ints
    supply_resources: Ints
    supply_amounts: Ints
    linking: LinkingRows

    @property
    def largest_supply(self) -> int:
        """The largest supply of a resource, in capacity units."""
        return int(self.supply_amounts.max(initial=0))

    @property
    def first_modes(self) -> Ints:
        """The first mode of each site, then the number of modes, [sites + 1]."""
        return np.searchsorted(self.mode_sites, np.arange(len(self.copies) + 1))

    @property
    def first_resources(self) -> Ints:
        """The first resource of each site, then the number of resources, [sites + 1]."""
        return np.searchsorted(self.resource_sites, np.arange(len(self.copies) + 1))


@dataclass(frozen=True, slots=True)
class Prices:
    """Lagrange multipliers, all at least 0: `workloads` [workloads], and `linking` [rows]."""

    workloads: Floats
    linking: Floats


@dataclass(frozen=True, slots=True)
class Subproblem:
    """Some sites and workloads as a problem of their own, and their numbers in the whole."""

    blocks: BlockProblem
    workloads: Ints
    resources: Ints
    sites: Ints
    modes: Ints


def subproblem_of(
    blocks: BlockProblem, kept_workloads: Bools, copies: Ints, counts: Ints, limits: Floats
) -> Subproblem:
    """Return the problem of some workloads and of the sites that have copies."""
    kept_sites = copies > 0
    workloads, sites = np.flatnonzero(kept_workloads), np.flatnonzero(kept_sites)
    resources = np.flatnonzero(kept_sites[blocks.resource_sites])
    modes = np.flatnonzero(kept_sites[blocks.mode_sites])
    supplies = kept_sites[blocks.mode_sites[blocks.supply_modes]]
    workload_at, resource_at = (
        _positions(kept_workloads),
        _positions(kept_sites[blocks.resource_sites]),
    )
    site_at, mode_at = _positions(kept_sites), _positions(kept_sites[blocks.mode_sites])
    return Subproblem(
        BlockProblem(
            values=blocks.values[np.ix_(workloads, resources)],
            sizes=blocks.sizes[workloads],
            counts=counts[workloads],
            most_per_site=blocks.most_per_site[workloads],
            resource_sites=site_at[blocks.resource_sites[resources]],
            copies=copies[sites],
            mode_sites=site_at[blocks.mode_sites[modes]],
            mode_values=blocks.mode_values[modes],
            supply_modes=mode_at[blocks.supply_modes[supplies]],
            supply_resources=resource_at[blocks.supply_resources[supplies]],
            supply_amounts=blocks.supply_amounts[supplies],
            linking=blocks.linking.renumbered(limits, workload_at, resource_at, mode_at),
        ),
        workloads,
        resources,
        sites,
        modes,
    )


def _positions(kept: Bools) -> Ints:
    """Return the new position of what is kept, -1 elsewhere."""
    return np.where(kept, np.cumsum(kept) - 1, -1)


def entries_by_owner(owners: Ints, count: int) -> list[Ints]:
    """Return the positions of the entries of every owner."""
    order = np.argsort(owners, kind="stable")
    cuts = np.searchsorted(owners[order], np.arange(1, count))
    return np.split(order, cuts) if count else []


def matches(ordered: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return the positions in `wanted` and in `ordered` of all pairs of equal keys."""
    left = np.searchsorted(ordered, wanted, side="left")
    times = np.searchsorted(ordered, wanted, side="right") - left
    at = np.repeat(np.arange(len(wanted)), times)
    offset = np.arange(len(at)) - np.repeat(np.cumsum(times) - times, times)
    return at, np.repeat(left, times) + offset


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
