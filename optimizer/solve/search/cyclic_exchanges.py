"""Cyclic exchanges: workloads take each other's places, in a cycle of any length, policies stay.

P. M. Thompson, J. B. Orlin, "The theory of cyclic transfers", MIT Operations Research Center
working paper OR 200-89 (1989). An arc i -> j of the improvement graph means that the workload of
assignment i takes the place of assignment j, and gains value[i, place of j] - value[j, place of j].
One more node stands for room that is free, and for running nowhere, so chains of moves are cycles
too. A cycle over different resources gains the sum of its arcs. Each layer of Bellman's recursion
is one step of numpy over all arcs.
"""

from collections.abc import Callable, Sequence

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.allocation import EXACT, Allocation
from optimizer.model.decision_comparison import SAME_VALUE
from optimizer.model.objective import tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import linking_rows

MOST_ASSIGNMENTS = 1_500
"""Replicas of a priority up to which exchanges are tried: the graph has their square, 18 MB."""

_LONGEST = 6
"""Arcs of a cycle at most."""

_ENDS = 30
"""Best ends of paths that are followed back to a cycle, in each layer."""

_MOST_REFUSED = 20
"""Cycles that a rule forbids, after which the search ends: only capacity is in the arcs."""


def improve_by_exchanges(
    problem: Problem,
    decision: Decision,
    stop: Callable[[], bool],
    *,
    tier: int = 0,
    enough: float = np.inf,
) -> Decision:
    """Return a decision with the same policies that is worth no less.

    The decision satisfies every rule. Only workloads of `tier` move. Ends at the value `enough` of
    the tier, and where no cycle gains; deterministic unless `stop` returns True.
    """
    movable = np.flatnonzero(problem.workload_tier == tier)
    value = tier_values(problem, decision)[tier]
    nodes = sum(problem.workloads[workload].replicas for workload in movable.tolist())
    if nodes > MOST_ASSIGNMENTS or value >= enough:
        return decision
    graph = _ImprovementGraph(problem, decision, movable)
    while value < enough and not stop():
        gained = graph.improve()
        if not gained:
            break
        value += gained
    return graph.allocation.decision()


class _ImprovementGraph:
    """The assignments of some workloads as nodes; those that run less often than asked as well."""

    def __init__(self, problem: Problem, decision: Decision, movable: Ints) -> None:
        self._problem, self._movable = problem, movable
        self._amounts = np.array([workload.amount for workload in problem.workloads])
        self._values = np.where(np.isnan(problem.values), -np.inf, problem.values)
        self.allocation = Allocation(problem, decision, rows=linking_rows(problem))
        self._refused = dict[tuple[int, int, int], None]()

    def improve(self) -> float:
        """Apply the first cycle that gains and keeps every rule; return its gain, 0 without one."""
        while len(self._refused) < _MOST_REFUSED:
            workloads, places = self._nodes()
            gains, free = self._arcs(workloads, places)
            cycle = _best_cycle(gains, places, free)
            if not cycle:
                return 0.0
            moves = [
                (int(workloads[i]), int(places[i]), int(free[i] if j == len(places) else places[j]))
                for i, j in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
                if i < len(places)
            ]
            if self._moved(moves):
                follows = np.roll(cycle, -1)
                return float(gains[cycle, follows].sum())
        return 0.0

    def _nodes(self) -> tuple[Ints, Ints]:
        """Return workloads and the resources where they run, -1 for an assignment more."""
        running, workloads = self.allocation.resources_of, self._problem.workloads
        pairs = [
            (workload, place)
            for workload in self._movable.tolist()
            for place in [*running[workload], -1][: workloads[workload].replicas]
        ]
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _arcs(self, workloads: Ints, places: Ints) -> tuple[Floats, Ints]:
        """Return the gains [nodes + 1, nodes + 1] and the best free resource of each node, or -1.

        The last node stands for free room and for running nowhere.
        """
        count, clusters, idle = len(places), self._problem.resource_cluster, places < 0
        room = np.where(self.allocation.exists, self.allocation.residual, -np.inf)
        amounts, own = (
            self._amounts[workloads],
            np.where(idle, 0.0, self._values[workloads, places]),
        )
        here = np.where(idle, -1, clusters[places])
        elsewhere = np.zeros((len(self._problem.workloads), len(self._problem.clusters)), np.int64)
        np.add.at(elsewhere, (workloads[~idle], here[~idle]), 1)
        values = self._values[workloads]
        # A workload runs once on a cluster: it may return only to the one that it leaves.
        others = elsewhere[workloads][:, clusters] - (here[:, None] == clusters)
        values[others > 0] = -np.inf
        slack = EXACT * np.maximum(1.0, amounts)[:, None]
        gains = np.full((count + 1, count + 1), -np.inf)
        fits = amounts[:, None] <= (room[places] + amounts)[None, :] + slack
        fits &= (places[:, None] != places) & ~idle
        gains[:-1, :-1] = np.where(fits, values[:, places] - own, -np.inf)
        gains[-1, :-1] = -own
        into = np.where(amounts[:, None] <= room + slack, values, -np.inf)
        into[np.flatnonzero(~idle), places[~idle]] = -np.inf
        free = into.argmax(axis=1)
        best = into[np.arange(count), free]
        free = np.where(best > 0, free, -1)
        gains[:-1, -1] = np.maximum(best, 0.0)
        for workload, place, target in self._refused:
            at = (workloads == workload) & (places == place)
            gains[np.ix_(np.append(at, False), np.append(places == target, False))] = -np.inf
            gains[:-1, -1][at & (free == target)] = -np.inf
        return gains, free

    def _moved(self, moves: Sequence[tuple[int, int, int]]) -> bool:
        """Make moves (workload, from, to), unless a rule forbids one of them: that is noted."""
        state, left, made = self.allocation, [move[:2] for move in moves if move[1] >= 0], []
        for workload, place in left:
            state.unassign(workload, place)
        refused = None
        for move in moves:
            workload, _, target = move
            if target >= 0 and not state.fits(workload, target):
                refused = move
                break
            if target >= 0:
                state.assign(workload, target)
                made.append((workload, target))
        if refused is None:
            refused = next(
                (move for move in moves if move[1] >= 0 and not state.allows_absence(*move[:2])),
                None,
            )
        if refused is None:
            return True
        self._refused[refused] = None
        for pair in made:
            state.unassign(*pair)
        for pair in left:
            state.assign(*pair)
        return False


def _best_cycle(gains: Floats, places: Ints, free: Ints) -> list[int]:
    """Return the nodes of the cycle that gains most in the first layer that has one, or none.

    Its resources differ, so that no arc changes the room of another.
    """
    totals, parents = np.zeros(len(gains)), list[Ints]()
    nodes = np.arange(len(gains))
    for _ in range(_LONGEST):
        reached = totals[:, None] + gains
        parents.append(reached.argmax(axis=0))
        totals = reached[parents[-1], nodes]
        best, most = list[int](), SAME_VALUE
        for end in np.argsort(-totals, kind="stable")[:_ENDS].tolist():
            cycle = _cycle_before(end, parents)
            gain = float(gains[cycle, np.roll(cycle, -1)].sum()) if cycle else 0.0
            if gain > most and _is_simple(cycle, places, free):
                best, most = cycle, gain
        if best:
            return best
    return []


def _cycle_before(end: int, parents: Sequence[Ints]) -> list[int]:
    """Return the cycle that the path to a node closes last, in the order of its arcs."""
    path = [end]
    for parent in reversed(parents):
        node = int(parent[path[-1]])
        if node in path:
            return path[path.index(node) :][::-1]
        path.append(node)
    return []


def _is_simple(cycle: Sequence[int], places: Ints, free: Ints) -> bool:
    """Tell whether no resource is met twice."""
    met = [int(places[node]) for node in cycle if node < len(places) and places[node] >= 0]
    met += [
        int(free[i])
        for i, j in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        if j == len(places) and i < len(places) and free[i] >= 0
    ]
    return len(met) == len(set(met))
