"""The placement problem: numbered clusters, slots, options and tasks, and an array of values.

Made for large fleets: places (a task on a slot) are entries of an array, never Python objects.
Variables are numbered too: first the options, then the usable places task by task.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from optimizer.domain.compact_numbers import Values, narrowed, widened
from optimizer.domain.solution import Choice, Decision, Place, Variable
from optimizer.model.terms import (
    ANY,
    Bools,
    Floats,
    Ints,
    Limit,
    Option,
    Places,
    Slot,
    Spread,
    Task,
    Uses,
)

__all__ = [
    "ANY",
    "Bools",
    "Floats",
    "Ints",
    "Limit",
    "Option",
    "Places",
    "Problem",
    "Slot",
    "Spread",
    "Task",
    "Uses",
    "grouped",
    "objective",
    "tier_values",
    "upper_bound",
    "upper_bounds",
]


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Problem:
    """What can be decided. The empty decision breaks no rule.

    `values` [tasks, slots]: NaN where a task can't run; a task runs on slots of its kind alone,
    and on a cluster that has a slot for each of its extras. `base` [slots]: supplied without any
    policy. `labels`: by label key, each cluster's value, which Spread speaks of. `priorities`:
    those that count although no task may have them; what options cost belongs to the last of all.
    """

    clusters: tuple[str, ...]
    slots: tuple[Slot, ...]
    options: tuple[Option, ...]
    tasks: tuple[Task, ...]
    values: Floats
    base: Floats
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    priorities: tuple[int, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields in little room; what is derived from them is derived again."""
        return self._state(narrowed)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the fields as they were before they were put away."""
        self.__dict__.update(state)
        self.__dict__.update(self._state(widened))

    def _state(self, change: Callable[[Values], Values]) -> dict[str, Any]:
        """Return the fields, every array of places changed, and shared where it was."""
        changed = {id(array): change(array) for array in self._of_places()}
        state = {item.name: getattr(self, item.name) for item in fields(self)}
        limits = tuple(_with_places(item, changed) for item in self.limits)
        return {**state, "values": changed[id(self.values)], "limits": limits}

    def _of_places(self) -> Iterator[Floats]:
        yield self.values
        yield from (item.places for item in self.limits if item.places is not None)

    @property
    def size(self) -> int:
        """The number of variables."""
        return int(np.count_nonzero(~np.isnan(self.values))) + len(self.options)

    @cached_property
    def tiers(self) -> tuple[int, ...]:
        """The priorities, highest first: a tier never loses anything to a later one."""
        own = {task.priority for task in self.tasks}
        return tuple(sorted(own.union(self.priorities), reverse=True))

    @cached_property
    def task_tier(self) -> Ints:
        """The tier of each task, as an index into `tiers`."""
        index = {priority: tier for tier, priority in enumerate(self.tiers)}
        return _ints(index[task.priority] for task in self.tasks)

    @cached_property
    def slot_cluster(self) -> Ints:
        """The cluster of each slot."""
        return _ints(slot.cluster for slot in self.slots)

    @cached_property
    def places(self) -> Places:
        """The usable places; place i is variable `len(options) + i`."""
        task, slot = np.nonzero(~np.isnan(self.values))
        return Places(task, slot, self.slot_cluster[slot], self.values[task, slot])

    def places_of(self, task: int) -> Ints:
        """Return the numbers of a task's usable places."""
        return np.arange(self._first_places[task], self._first_places[task + 1])

    @cached_property
    def _first_places(self) -> Ints:
        return np.searchsorted(self.places.task, np.arange(len(self.tasks) + 1))

    @cached_property
    def column_cluster(self) -> Ints:
        """The cluster of each variable."""
        of_options = _ints(option.cluster for option in self.options)
        return np.concatenate([of_options, self.places.cluster])

    @cached_property
    def supply(self) -> Uses:
        """What each option supplies of each slot."""
        found = [
            (slot, column, amount)
            for column, option in enumerate(self.options)
            for slot, amount in option.supplies
        ]
        return _uses(found)

    @cached_property
    def demand(self) -> Uses:
        """What each usable place takes of each slot, extras included."""
        places, first = self.places, len(self.options)
        columns = np.arange(first, first + len(places.task))
        amounts = np.array([task.amount for task in self.tasks], dtype=np.float64)
        found = [Uses(places.slot, columns, amounts[places.task])]
        for kind in sorted({kind for task in self.tasks for kind, _ in task.extras}):
            extra = np.array([dict(task.extras).get(kind, 0.0) for task in self.tasks])
            taking = np.nonzero(extra[places.task] > 0)[0]
            slots = self._slots_of(kind)[places.cluster[taking]]
            found.append(Uses(slots, columns[taking], extra[places.task[taking]]))
        return Uses(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _slots_of(self, kind: str) -> Ints:
        """Return each cluster's slot of a kind that has no devices, -1 where it has none."""
        missing = len(self.clusters) * [-1]
        for slot, item in enumerate(self.slots):
            if (item.kind, item.device) == (kind, ANY):
                missing[item.cluster] = slot
        return _ints(missing)

    @cached_property
    def cluster_index(self) -> Mapping[str, int]:
        """Cluster numbers by name."""
        return {name: index for index, name in enumerate(self.clusters)}

    @cached_property
    def task_index(self) -> Mapping[str, int]:
        """Task numbers by name."""
        return {task.name: index for index, task in enumerate(self.tasks)}

    @cached_property
    def slot_index(self) -> Mapping[Slot, int]:
        """Slot numbers."""
        return {slot: index for index, slot in enumerate(self.slots)}

    @cached_property
    def option_index(self) -> Mapping[Choice, int]:
        """Option numbers by cluster and policy."""
        return {self.choice(index): index for index in range(len(self.options))}

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable by name, in the order of their numbers; for small problems."""
        pairs = zip(self.places.task.tolist(), self.places.slot.tolist(), strict=True)
        options = (self.choice(index) for index in range(len(self.options)))
        return (*options, *(self.place(*pair) for pair in pairs))

    def choice(self, option: int) -> Choice:
        """Return an option by name."""
        found = self.options[option]
        return Choice(self.clusters[found.cluster], found.policy)

    def place(self, task: int, slot: int) -> Place:
        """Return a place by name."""
        found = self.slots[slot]
        return Place(self.tasks[task].name, self.clusters[found.cluster], found.device)

    def indexes(self, place: Place) -> tuple[int, int] | None:
        """Return the task and slot of a place; None where the problem does not have it."""
        task, cluster = self.task_index.get(place.workload), self.cluster_index.get(place.cluster)
        if task is None or cluster is None:
            return None
        slot = self.slot_index.get(Slot(cluster, self.tasks[task].kind, place.device))
        usable = slot is not None and not np.isnan(self.values[task, slot])
        return (task, slot) if slot is not None and usable else None

    def score(self, place: Place) -> float:
        """Return what a usable place is worth, without what staying there saves; else KeyError."""
        found = self.indexes(place)
        if found is None:
            raise KeyError(place)
        task = self.tasks[found[0]]
        stays = self.slots[found[1]].cluster in task.current
        return float(self.values[found]) - (task.move_cost if stays else 0.0)

    def weights(self, tier: int | None = None) -> Floats:
        """Return each variable's part of the objective, or of one tier's.

        What options cost belongs to the last tier.
        """
        places, last = self.places, len(self.tiers) - 1
        options = np.array([option.value for option in self.options], dtype=np.float64)
        if tier is None:
            return np.concatenate([options, places.value])
        of_places = np.where(self.task_tier[places.task] == tier, places.value, 0.0)
        return np.concatenate([options if tier == last else 0 * options, of_places])

    def decision(self, columns: Iterable[int]) -> Decision:
        """Return the decision that sets these variables, in the problem's order."""
        first, places = len(self.options), self.places
        chosen = sorted(columns)
        taken = [column - first for column in chosen if column >= first]
        return Decision(
            tuple(self.choice(column) for column in chosen if column < first),
            tuple(self.place(int(places.task[i]), int(places.slot[i])) for i in taken),
        )

    def restricted(self, places: Bools, options: Bools) -> "Problem":
        """Return the same problem on fewer places [tasks, slots] and options [options].

        Tasks and slots that are left without a place go; clusters keep their numbers.
        """
        known = ~np.isnan(self.values)
        usable = places & known
        tasks, slots = np.nonzero(usable.any(axis=1))[0], np.nonzero(usable.any(axis=0))[0]
        values = _corner(self.values, tasks, slots)
        if np.count_nonzero(usable) < np.count_nonzero(known):
            values = np.where(_corner(usable, tasks, slots), values, np.nan)
        return self._cropped(np.nonzero(options)[0].tolist(), tasks, slots, values)

    def part(self, options: Sequence[int], tasks: Ints, slots: Ints) -> "Problem":
        """Return the problem of these options and of the few places (tasks[i], slots[i])."""
        kept_tasks, rows = np.unique(tasks, return_inverse=True)
        kept_slots, columns = np.unique(slots, return_inverse=True)
        values = np.full((len(kept_tasks), len(kept_slots)), np.nan)
        values[rows, columns] = self.values[tasks, slots]
        return self._cropped(options, kept_tasks, kept_slots, values)

    def _cropped(
        self, options: Sequence[int], tasks: Ints, slots: Ints, values: Floats
    ) -> "Problem":
        """Return the problem of these values [tasks, slots], with the slots of the extras."""
        kept = tuple(self.tasks[task] for task in tasks.tolist())
        every = np.unique(np.concatenate([slots, self._slots_of_extras(kept, slots)]))
        if len(every) > len(slots):
            widened = np.full((len(tasks), len(every)), np.nan)
            widened[:, np.searchsorted(every, slots)] = values
            values = widened
        number = {slot: index for index, slot in enumerate(every.tolist())}
        return replace(
            self,
            slots=tuple(self.slots[slot] for slot in number),
            options=tuple(self.options[option].renumbered(number) for option in options),
            tasks=kept,
            values=values,
            base=self.base[every],
            limits=tuple(self._cut_limits(options, tasks, every)),
        )

    def _cut_limits(self, options: Sequence[int], tasks: Ints, slots: Ints) -> Iterator[Limit]:
        """Yield the limits of what is left; those that shared an array do so again."""
        cut: dict[int, Floats] = {}
        for item in self.limits:
            if item.places is not None and id(item.places) not in cut:
                cut[id(item.places)] = _corner(item.places, tasks, slots)
            places = None if item.places is None else cut[id(item.places)]
            yield item.cut(options, tasks, slots, places)

    def _slots_of_extras(self, tasks: Iterable[Task], slots: Ints) -> Ints:
        kinds = {kind for task in tasks for kind, _ in task.extras}
        clusters = np.unique(self.slot_cluster[slots]).tolist() if kinds else []
        wanted = (Slot(cluster, kind, ANY) for cluster in clusters for kind in sorted(kinds))
        return _ints(self.slot_index[slot] for slot in wanted if slot in self.slot_index)


def _corner(array: NDArray[T], tasks: Ints, slots: Ints) -> NDArray[T]:
    """Return the part of an array of some tasks and slots; the array itself where that is all."""
    whole = array.shape == (len(tasks), len(slots))
    return array if whole else array[np.ix_(tasks, slots)]


def _with_places(limit: Limit, arrays: Mapping[int, Any]) -> Limit:
    """Return a limit with another array of what places use, by the id of its own."""
    return limit if limit.places is None else replace(limit, places=arrays[id(limit.places)])


def objective(problem: Problem, decision: Decision) -> float:
    """Return the value of a decision: the sum over all tiers."""
    return float(sum(tier_values(problem, decision)))


def tier_values(problem: Problem, decision: Decision) -> tuple[float, ...]:
    """Return the value of a decision in each tier; the better of two is the larger tuple.

    KeyError where the decision takes what is no candidate.
    """
    totals = [0.0] * max(1, len(problem.tiers))
    for place in decision.places:
        found = problem.indexes(place)
        if found is None:
            raise KeyError(place)
        totals[problem.task_tier[found[0]]] += float(problem.values[found])
    totals[-1] += sum(
        problem.options[problem.option_index[item]].value for item in decision.choices
    )
    return tuple(totals)


def upper_bounds(problem: Problem) -> tuple[float, ...]:
    """Return what no decision exceeds in each tier: every task at its best places, if worth it."""
    totals = [0.0] * max(1, len(problem.tiers))
    of_tasks = zip(problem.task_tier.tolist(), problem.tasks, problem.values, strict=True)
    for tier, task, row in of_tasks:
        totals[tier] += _best(task, row)
    return tuple(totals)


def upper_bound(problem: Problem) -> float:
    """Return a value that no decision exceeds."""
    return float(sum(upper_bounds(problem)))


def _best(task: Task, row: Floats) -> float:
    usable = row[row > 0]  # NaN is not above 0
    if len(usable) > task.replicas:
        usable = np.partition(usable, -task.replicas)[-task.replicas :]
    return float(usable.sum())


def grouped(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each distinct key with the positions that have it, both ascending."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True) if len(keys) else ()


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _uses(found: Sequence[tuple[int, int, float]]) -> Uses:
    return Uses(
        _ints(slot for slot, _, _ in found),
        _ints(column for _, column, _ in found),
        np.array([amount for _, _, amount in found], dtype=np.float64),
    )
