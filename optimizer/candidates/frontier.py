"""The Pareto frontier of supplies that GPUs can be configured for, thinned where it is large.

GPU after GPU is added, as in dynamic programming; a supply that another one covers for no more cost
is dropped. That is exact, because a demand that fits a supply fits a larger one. Where too many
remain, farthest-first traversal keeps those that differ most (T. F. Gonzalez, "Clustering to
minimize the maximum intercluster distance", Theoretical Computer Science 38, 1985). The bound is
the most that a dropped supply can be worth more than the nearest one kept.

For one device, if the dropped supply has s instances of it and the kept one t < s, that is at most

    min( ceil((s - t) / a) * v,  W(s) - W(max(0, t - A + 1)) )

where a and A are the smallest and largest amounts requested, v is the highest value of a request,
and W is `Demand.fractional_values`. First term: removing any requests of that number is enough.
Second term: filling t by value per instance uses at least t - A + 1 instances, and W is concave.
Both terms do not grow when s and t grow together, so the losses of several steps add up.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimizer.domain.fleet import GpuPattern
from optimizer.domain.mig.demand import Demand

_COMPARED_POINTS = 1_500
"""Points up to which all pairs are compared, which takes less than 0.1 s."""


class FrontierPoint(NamedTuple):
    """A supply on the frontier: usable amounts by device, cost, and the pattern of each GPU.

    `changed`: GPUs that get another layout. `pieces`: instances plus unused compute slices.
    """

    supply: tuple[int, ...]
    cost: float
    changed: int
    pieces: int
    patterns: tuple[GpuPattern, ...]


class Frontier(NamedTuple):
    """Points, best first, and a bound on the value that dropped points can add."""

    points: tuple[FrontierPoint, ...]
    bound: float


def frontier(gpus: Sequence[Sequence[GpuPattern]], demand: Demand, *, most: int) -> Frontier:
    """Return at most `most` points that GPUs with these patterns can reach.

    The bound is 0 where the points cover every supply that the GPUs can reach.
    """
    points, bound = [FrontierPoint((0,) * len(demand.devices), 0.0, 0, 0, ())], 0.0
    for patterns in gpus:
        points, lost = _fewer(points, demand, keep=200, most=min(most, 64))
        points = _grown(points, patterns, demand.caps)
        bound += lost
    if bound:
        points += [_coordinate_ascent(gpus, part, demand.caps) for part in demand.subdemands]
    usable = [point._replace(supply=demand.usable(point.supply)) for point in points]
    points, lost = _fewer(
        [usable[at] for at in _PointArrays.of(usable).cheapest()], demand, keep=most, most=most
    )
    return Frontier(tuple(sorted(points, key=_preference)), bound + lost)


def _fewer(
    points: list[FrontierPoint], demand: Demand, *, keep: int, most: int
) -> tuple[list[FrontierPoint], float]:
    """Return the points, or `most` where `keep` are too few, and what the others can be worth."""
    if len(points) <= _COMPARED_POINTS:
        points = _nondominated(points)
    return (points, 0.0) if len(points) <= keep else _spread(points, demand, most)


def _grown(
    points: Sequence[FrontierPoint], patterns: Sequence[GpuPattern], caps: Sequence[int]
) -> list[FrontierPoint]:
    before, more = _PointArrays.of(points), _PointArrays.of(patterns)
    supplies = np.minimum(before.supplies[:, None] + more.supplies, np.array(caps))
    every = _PointArrays(
        supplies.reshape(-1, len(caps)),
        (before.costs[:, None] + more.costs).ravel(),
        (before.changed[:, None] + more.changed).ravel(),
        (before.pieces[:, None] + more.pieces).ravel(),
    )
    found = []
    for at in every.cheapest():
        point, pattern = points[at // len(patterns)], patterns[at % len(patterns)]
        found.append(
            FrontierPoint(
                tuple(every.supplies[at].tolist()),
                point.cost + pattern.cost,
                point.changed + pattern.changed,
                point.pieces + pattern.pieces,
                (*point.patterns, pattern),
            )
        )
    return found


def _coordinate_ascent(
    gpus: Sequence[Sequence[GpuPattern]], demand: Demand, caps: Sequence[int]
) -> FrontierPoint:
    """Return a point that serves a demand well: GPU by GPU the best pattern, and once more."""
    tables = [np.array(table) for table in demand.fractional_values]
    offers = [np.array([pattern.supply for pattern in patterns]) for patterns in gpus]
    prices = [np.array([pattern.cost for pattern in patterns]) for patterns in gpus]
    total = np.zeros(len(caps), dtype=np.int64)
    chosen = [-1] * len(gpus)
    for index in [*range(len(gpus))] * 2:
        if chosen[index] >= 0:
            total = total - offers[index][chosen[index]]
        worth = _of(tables, total + offers[index]).sum(axis=1) - prices[index]
        chosen[index] = int(worth.argmax())
        total = total + offers[index][chosen[index]]
    found = tuple(patterns[index] for patterns, index in zip(gpus, chosen, strict=True))
    return FrontierPoint(
        tuple(map(min, map(int, total), caps)),
        sum(pattern.cost for pattern in found),
        sum(pattern.changed for pattern in found),
        sum(pattern.pieces for pattern in found),
        found,
    )


class _PointArrays(NamedTuple):
    """Supplies [points, devices], and by what those of equal ones are preferred."""

    supplies: NDArray[np.int64]
    costs: NDArray[np.float64]
    changed: NDArray[np.int64]
    pieces: NDArray[np.int64]

    @classmethod
    def of(cls, items: Sequence[FrontierPoint | GpuPattern]) -> "_PointArrays":
        """Return those of points or patterns."""
        return cls(
            np.array([item.supply for item in items], dtype=np.int64),
            np.array([item.cost for item in items], dtype=np.float64),
            np.array([item.changed for item in items], dtype=np.int64),
            np.array([item.pieces for item in items], dtype=np.int64),
        )

    def cheapest(self) -> list[int]:
        """Return the position of the best one of each supply, in the order of the supplies."""
        _, first, number = np.unique(self.supplies, axis=0, return_index=True, return_inverse=True)
        order = np.lexsort((self.pieces, self.changed, self.costs, number))
        best = order[np.searchsorted(number[order], np.arange(len(first)))]
        return [int(at) for at in best[np.argsort(first)]]


def _nondominated(points: list[FrontierPoint]) -> list[FrontierPoint]:
    """Return the points, of different supplies, that no other one covers for no more cost."""
    ranked = sorted(points, key=lambda point: (-sum(point.supply), point.cost, point.supply))
    costs = np.array([point.cost for point in ranked])
    covers = costs[:, None] <= costs[None, :]
    for amounts in np.array([point.supply for point in ranked], dtype=np.int32).T:
        covers &= amounts[:, None] >= amounts[None, :]
    np.fill_diagonal(covers, val=False)
    return [ranked[index] for index in np.nonzero(~covers.any(axis=0))[0].tolist()]


def _spread(
    points: list[FrontierPoint], demand: Demand, most: int
) -> tuple[list[FrontierPoint], float]:
    losses = _Losses(points, demand)
    chosen = _promising(demand, losses)[:most]
    away = np.minimum.reduce([losses.to(index) for index in chosen])
    while len(chosen) < most and away.max() > 0:
        chosen.append(int(away.argmax()))
        away = np.minimum(away, losses.to(chosen[-1]))
    return [points[index] for index in sorted(chosen)], float(max(away.max(), 0.0))


def _promising(demand: Demand, losses: "_Losses") -> list[int]:
    """Return the best points for the demand and for its subdemands."""
    tables = (demand.best_values, *(part.fractional_values for part in demand.subdemands))
    return list(dict.fromkeys(int(np.argmax(losses.value(table))) for table in tables))


class _Losses:
    """Bounds on how much more each point can be worth than another one."""

    def __init__(self, points: list[FrontierPoint], demand: Demand) -> None:
        self._supplies = np.array([point.supply for point in points], dtype=np.int64)
        self._costs = np.array([point.cost for point in points])
        self._most_saved = 0.0 if demand.before_costs else np.inf
        self._smallest, self._largest = np.array(demand.amounts, dtype=np.int64).T
        self._dearest = np.array(demand.highest_values)
        self._tables = [np.array(table) for table in demand.fractional_values]
        # One row for each device: numpy is several times faster along rows that are long.
        self._amounts = np.ascontiguousarray(self._supplies.T, dtype=np.float64)
        self._worth = np.ascontiguousarray(_of(self._tables, self._whole(self._supplies)).T)

    def value(self, tables: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return what each point is worth, by the values of 0, 1, 2, ... of each device."""
        worth = _of([np.array(table) for table in tables], self._supplies)
        return np.asarray(worth.sum(axis=1) - self._costs)

    def to(self, index: int) -> NDArray[np.float64]:
        """Return the most that each point may be worth more than the one at `index`."""
        remaining = self._supplies[index]
        missing = np.maximum(self._amounts - self._amounts[:, index, None], 0.0)
        fewest = np.ceil(missing / self._smallest[:, None]) * self._dearest[:, None]
        surely = np.where(
            self._smallest == self._largest,
            self._whole(remaining),
            np.maximum(remaining - self._largest + 1, 0),
        )
        cheapest = np.maximum(self._worth - _of(self._tables, surely[None, :]).T, 0.0)
        lost = np.minimum(fewest, cheapest).sum(axis=0)
        saved = np.minimum(self._costs - self._costs[index], self._most_saved)
        return np.asarray(lost - saved, dtype=np.float64)

    def _whole(self, supplies: NDArray[np.int64]) -> NDArray[np.int64]:
        """Round down to whole requests where all requests for a device have one amount."""
        step = np.where(self._smallest == self._largest, self._smallest, 1)
        return np.asarray(supplies // step * step, dtype=np.int64)


def _of(tables: list[NDArray[np.float64]], supplies: NDArray[np.int64]) -> NDArray[np.float64]:
    columns = [
        table[np.minimum(supplies[:, index], len(table) - 1)] for index, table in enumerate(tables)
    ]
    return np.stack(columns, axis=1)


def _preference(point: FrontierPoint) -> tuple[float, int, int, tuple[int, ...]]:
    return (point.cost, point.changed, point.pieces, tuple(-amount for amount in point.supply))
