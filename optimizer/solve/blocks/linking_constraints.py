"""The rows of a problem that blocks do not have built in.

Every rule's rows come along, those of rules that are added later too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.model import rules
from optimizer.model.lexicographic import SAME_VALUE
from optimizer.model.problem import Problem, grouped
from optimizer.model.rules import Row
from optimizer.solve.blocks.block_problem import Flags, Ints

_BLOCK_RULES = (
    rules.one_policy_per_pool,
    rules.capacity,
    rules.supplied,
    rules.once_per_cluster,
    rules.replicas,
)


@dataclass(frozen=True, slots=True)
class LinkingConstraints:
    """Entries of rows: of places (row, task, slot, coefficient), of options likewise."""

    limits: tuple[float, ...]
    place_rows: Ints
    place_tasks: Ints
    place_slots: Ints
    place_coefficients: np.ndarray[tuple[int], np.dtype[np.float64]]
    option_rows: Ints
    option_numbers: Ints
    option_coefficients: np.ndarray[tuple[int], np.dtype[np.float64]]

    @property
    def options(self) -> frozenset[int]:
        """The options that some row speaks of."""
        return frozenset(self.option_numbers.tolist())

    def wanted(self, shape: tuple[int, ...]) -> Flags:
        """Return the places that help to keep a row, and may be worth it below 0."""
        found = np.zeros(shape, np.bool_)
        helps = self.place_coefficients < 0
        found[self.place_tasks[helps], self.place_slots[helps]] = True
        return found


def linking_constraints(problem: Problem, inexact: frozenset[str]) -> LinkingConstraints:
    """Return the rows of all rules that are not built in, and of those built in that need it.

    `inexact`: kinds whose amounts the blocks only approximate.
    """
    rows = [row for rule in rules.RULES if rule not in _BLOCK_RULES for row in rule(problem)]
    rows += _capacity_rows(problem, inexact)
    rows += _once_per_cluster_rows(problem)
    return _entries(problem, rows)


def with_priority_floors(
    problem: Problem, further: LinkingConstraints, values: Sequence[float]
) -> LinkingConstraints:
    """Return the rows with one more for each of the first tiers: that it has these values."""
    tiers = problem.workload_tier[problem.assignments.workload]
    first = len(further.limits)
    limits, entries = list(further.limits), []
    for tier, value in enumerate(values):
        own = np.flatnonzero(tiers == tier)
        scale = float(np.abs(problem.assignments.value[own]).max(initial=0.0)) or 1.0
        limits.append((SAME_VALUE - value) / scale)
        row = np.full(len(own), first + tier)
        entries.append((row, own, -problem.assignments.value[own] / scale))
    rows, places, coefficients = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return replace(
        further,
        limits=tuple(limits),
        place_rows=np.concatenate([further.place_rows, rows]),
        place_tasks=np.concatenate([further.place_tasks, problem.assignments.workload[places]]),
        place_slots=np.concatenate([further.place_slots, problem.assignments.resource[places]]),
        place_coefficients=np.concatenate([further.place_coefficients, coefficients]),
    )


def linked_tasks(problem: Problem) -> frozenset[int]:
    """Return the tasks of which rules speak that are not built in."""
    rows = (row for rule in rules.RULES if rule not in _BLOCK_RULES for row in rule(problem))
    columns = np.concatenate([np.zeros(0, np.int64), *(row.columns for row in rows)])
    places = columns[columns >= len(problem.policies)] - len(problem.policies)
    return frozenset(problem.assignments.workload[places].tolist()) if len(places) else frozenset()


def _capacity_rows(problem: Problem, inexact: frozenset[str]) -> Iterator[Row]:
    """Yield the capacity of slots from which further kinds of a request are taken."""
    taken = {kind for task in problem.workloads for kind, _ in task.extras} | inexact
    if not taken:
        return
    slots = (slot for slot, _ in grouped(problem.demand.resource))
    for slot, row in zip(slots, rules.capacity(problem), strict=True):
        if problem.resources[slot].kind in taken:
            yield row


def _once_per_cluster_rows(problem: Problem) -> Iterator[Row]:
    """Yield that replicas run on different clusters, where a cluster has several slots for them."""
    if any(task.replicas > 1 for task in problem.workloads):
        several = {task.name for task in problem.workloads if task.replicas > 1}
        for row in rules.once_per_cluster(problem):
            place = int(row.columns[0]) - len(problem.policies)
            if problem.workloads[int(problem.assignments.workload[place])].name in several:
                yield row


def _entries(problem: Problem, rows: list[Row]) -> LinkingConstraints:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    number = np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows])
    columns = np.concatenate([none, *(row.columns for row in rows)])
    coefficients = np.concatenate([nothing, *(row.coefficients for row in rows)])
    # Rows of bytes and rows of workloads move prices alike if their coefficients are alike.
    scale = np.array([float(np.abs(row.coefficients).max(initial=0.0)) or 1.0 for row in rows])
    coefficients = coefficients / scale[number]
    first = len(problem.policies)
    of_options = columns < first
    places = columns[~of_options] - first
    some = bool(len(places))
    return LinkingConstraints(
        tuple(row.limit / own for row, own in zip(rows, scale.tolist(), strict=True)),
        number[~of_options],
        problem.assignments.workload[places] if some else none,
        problem.assignments.resource[places] if some else none,
        coefficients[~of_options],
        number[of_options],
        columns[of_options],
        coefficients[of_options],
    )
