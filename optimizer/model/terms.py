"""The terms of a placement problem: slots, options, tasks, limits, by number and in arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ANY = ""
"""The device of a slot of a kind that is not divided into devices, such as cpu."""


class Slot(NamedTuple):
    """Where tasks can run: a device of a kind on a cluster (by number)."""

    cluster: int
    kind: str
    device: str


class Option(NamedTuple):
    """A policy that a cluster may enforce; of the options of one pool, at most one.

    `supplies`: (slot, amount) pairs. `value`: what enforcing it adds to the objective, never
    above 0: minus the cost of changing to it. `current`: it is enforced now.
    """

    cluster: int
    pool: str
    policy: str
    supplies: tuple[tuple[int, float], ...]
    current: bool = False
    value: float = 0.0

    def renumbered(self, number: Mapping[int, int]) -> Self:
        """Return the option where slots have other numbers, or are gone."""
        supplies = ((number[slot], amount) for slot, amount in self.supplies if slot in number)
        return self._replace(supplies=tuple(supplies))


class Spread(NamedTuple):
    """At most `most` places per value of a cluster label, for all tasks of `group` together.

    Tasks share a spread where key, most and group are equal; an empty group is the task alone.
    """

    key: str
    most: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A workload: on each cluster it runs on it takes `amount` of a slot of its kind.

    `extras`: further (kind, amount), taken from the cluster's slots of device ANY. `replicas`:
    clusters to run on at most. `near`: of each set of names another must run on the same cluster.
    `apart`: no other of these may. `current`: clusters (by number) where it runs now; `move_cost`:
    what leaving one of them costs, part of the values of staying.
    """

    name: str
    app: str
    kind: str
    amount: float
    extras: tuple[tuple[str, float], ...] = ()
    replicas: int = 1
    priority: int = 0
    spread: tuple[Spread, ...] = ()
    near: tuple[tuple[str, ...], ...] = ()
    apart: tuple[str, ...] = ()
    current: tuple[int, ...] = ()
    move_cost: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """At most `most` of what places and options use together, never below 0.

    A place uses `tasks` [tasks] + `places` [tasks, slots] where its slot is `counted` [slots]; an
    option uses `options` [options].
    """

    name: str
    most: float
    counted: Bools
    tasks: Floats
    options: Floats
    places: Floats | None = None

    def used(self, task: Ints, slot: Ints) -> Floats:
        """Return what places use, given by tasks and slots."""
        amounts = self.tasks[task]
        if self.places is not None:
            amounts = amounts + self.places[task, slot]
        return np.where(self.counted[slot], amounts, 0.0)

    def of_places(self) -> Floats:
        """Return what every place uses [tasks, slots]; for small problems."""
        amounts = np.repeat(self.tasks[:, np.newaxis], len(self.counted), axis=1)
        whole = amounts if self.places is None else amounts + self.places
        return np.where(self.counted, whole, 0.0)

    def cut(self, options: Sequence[int], tasks: Ints, slots: Ints, places: Floats | None) -> Self:
        """Return the limit of some options, tasks and slots, whose own use is `places`."""
        return replace(
            self,
            counted=self.counted[slots],
            tasks=self.tasks[tasks],
            options=self.options[list(options)],
            places=places,
        )


class Places(NamedTuple):
    """The usable places, task by task: task, slot and cluster numbers, and values."""

    task: Ints
    slot: Ints
    cluster: Ints
    value: Floats


class Uses(NamedTuple):
    """Sparse matrix: `amount` of `slot` that the variable of number `column` takes or supplies."""

    slot: Ints
    column: Ints
    amount: Floats
