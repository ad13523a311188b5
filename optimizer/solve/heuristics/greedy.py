"""A first decision within moments: workload by workload, each where it is worth most.

What it takes of a cluster counts against a place, so that large workloads leave room where others
are worth more. G. B. Dantzig, "Discrete-variable extremum problems", Operations Research 5 (1957).
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.lexicographic import worth_more
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem, tier_values
from optimizer.model.rules import violations
from optimizer.solve.blocks.block_problem import Flags, Floats, Ints
from optimizer.solve.blocks.linking_constraints import linking_constraints

_TOLERANCE = 1e-9
_PRICE = 0.25  # of what an amount is worth on average that taking it costs


def greedy(problem: Problem, stop: Callable[[], bool]) -> Decision:
    """Return a decision that keeps every rule; stops early with what it has by then.

    What policies cost is not looked at before the end: where it is too much, nothing is done.
    """
    state = _State(problem)
    # Those that want to be near others find them there the second time.
    for task in np.tile(_order(problem), 2 if state.further.limits else 1).tolist():
        if stop():
            break
        state.place(task)
    found, nothing = state.decision(), Decision()
    worth, none = (tier_values(problem, decision) for decision in (found, nothing))
    return nothing if worth_more(none, worth) else found


def fill_remaining(problem: Problem, decision: Decision, stop: Callable[[], bool]) -> Decision:
    """Return a decision with the places besides that cost nothing, not even those worth nothing."""
    state = _State(problem)
    state.hold(decision)
    for task in _order(problem).tolist():
        if stop():
            break
        state.place(task)
    found = state.decision()
    before, after = (tier_values(problem, item) for item in (decision, found))
    return decision if violations(problem, found) or worth_more(before, after) else found


def _order(problem: Problem) -> Ints:
    """Return the tasks by priority, then by what they are worth for what they take."""
    amounts = np.array([max(task.amount, _TOLERANCE) for task in problem.workloads])
    worth = np.fmax.reduce(problem.values, axis=1, initial=0.0) / amounts
    return np.lexsort((-worth, problem.workload_tier))


class _State:
    """What is decided, and what is left: of slots, of further rows, of places to take."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.further = linking_constraints(problem, frozenset())
        self._of_tasks = _entries(self.further.place_tasks, len(problem.workloads))
        self._of_options = _entries(self.further.option_numbers, len(problem.policies))
        self._limits = np.array(self.further.limits, np.float64)
        self._left: Floats = problem.base.copy()
        self._there: Flags = problem.base > 0
        self._chosen: list[int] = []
        self._slots_of: list[list[int]] = [[] for _ in problem.workloads]
        self._open: dict[int, dict[str, list[int]]] = {}
        for number, option in enumerate(problem.policies):
            self._open.setdefault(option.cluster, {}).setdefault(option.pool, []).append(number)
        self._slots = _entries(problem.resource_cluster, len(problem.clusters))
        self._more = np.zeros(len(problem.resources))
        for cluster in self._open:
            self._promise(cluster)
        self._costs = self._prices()

    def decision(self) -> Decision:
        """Return what is decided; policies that supply nothing come along."""
        problem = self._problem
        return Decision(
            tuple(problem.enforcement(option) for option in sorted(self._chosen)),
            tuple(
                problem.assignment(task, slot)
                for task, own in enumerate(self._slots_of)
                for slot in sorted(own)
            ),
        )

    def hold(self, decision: Decision) -> None:
        """Begin with a decision that keeps every rule."""
        problem, further = self._problem, self.further
        for choice in decision.policies:
            self._enforce(problem.policy_index[choice])
        for task, slot in filter(None, map(problem.indexes, decision.assignments)):
            own = self._of_tasks[task]
            own = own[further.place_slots[own] == slot]
            np.subtract.at(self._limits, further.place_rows[own], further.place_coefficients[own])
            for need, much in self._needs(task, slot):
                self._left[need] -= much
            self._slots_of[task].append(slot)

    def place(self, task: int) -> None:
        """Place a task as often as it may be, where it is worth most for what it takes."""
        net, had = None, self._slots_of[task]
        while len(had) < self._problem.workloads[task].replicas:
            net = self._net(task) if net is None else net
            slot = int(np.argmax(net))
            if net[slot] == -np.inf:
                return
            if self._take(task, slot):
                had.append(slot)
                net = None
            else:
                net[slot] = -np.inf

    def _prices(self) -> Floats:
        """Return what one unit of each slot costs: most where a cluster could have few of them."""
        problem = self._problem
        supply = self._left + self._more
        top = np.zeros(len(problem.clusters))
        np.maximum.at(top, problem.resource_cluster, supply)
        share = top[problem.resource_cluster] / np.maximum(supply, _TOLERANCE)
        amounts = np.array([task.amount for task in problem.workloads])
        best = np.fmax.reduce(problem.values, axis=1, initial=0.0)
        unit = _PRICE * float(best.sum()) / max(float(amounts.sum()), _TOLERANCE)
        costs: Floats = np.where(supply > 0, unit * share, 0.0)
        return costs

    def _net(self, task: int) -> Floats:
        """Return what each slot is worth to a task, -inf where it can't have it."""
        problem, amount = self._problem, self._problem.workloads[task].amount
        values = problem.values[task]
        room = self._left + self._more
        fits = (room >= amount - _TOLERANCE) & (self._there | (self._more > 0)) & (values >= 0)
        net = np.where(fits, values - amount * self._costs, -np.inf)
        for slot in self._slots_of[task]:
            net[self._slots[problem.resources[slot].cluster]] = -np.inf
        self._block(task, net)
        return net

    def _block(self, task: int, net: Floats) -> None:
        """Close the slots on which the task would break a further row."""
        own, further = self._of_tasks[task], self.further
        if len(own):
            after = further.place_coefficients[own]
            broken = after > self._limits[further.place_rows[own]] + _TOLERANCE
            net[further.place_slots[own[broken & (after > 0)]]] = -np.inf

    def _take(self, task: int, slot: int) -> bool:
        """Take a place, with the policies that it needs; tell whether that was possible."""
        cluster, needs = self._problem.resources[slot].cluster, self._needs(task, slot)
        if not all(self._ensure(cluster, need, much) for need, much in needs):
            return False
        own, further = self._of_tasks[task], self.further
        own = own[further.place_slots[own] == slot]
        after = further.place_coefficients[own]
        rows = further.place_rows[own]
        if ((after > 0) & (after > self._limits[rows] + _TOLERANCE)).any():
            return False  # the policies took it
        np.subtract.at(self._limits, rows, after)
        for need, much in needs:
            self._left[need] -= much
        return True

    def _needs(self, task: int, slot: int) -> list[tuple[int, float]]:
        """Return what a task takes of which slots where it runs on one."""
        problem, wanted = self._problem, self._problem.workloads[task]
        cluster = problem.resources[slot].cluster
        extras = (
            (problem.resource_index[ClusterResource(cluster, k, NO_DEVICE)], much)
            for k, much in wanted.extras
        )
        return [(slot, wanted.amount), *extras]

    def _ensure(self, cluster: int, slot: int, amount: float) -> bool:
        """Choose policies until a slot exists and has so much left."""
        pools = self._open.get(cluster, {})
        while not self._there[slot] or self._left[slot] < amount - _TOLERANCE:
            best = max(
                (
                    (self._supplied(number, slot), self._problem.policies[number].current, -number)
                    for numbers in pools.values()
                    for number in numbers
                ),
                default=(0.0, False, 0),
            )
            if best[0] <= 0:
                return False
            self._choose(-best[2])
        return True

    def _supplied(self, option: int, slot: int) -> float:
        supplies = self._problem.policies[option].supplies
        return sum(amount for own, amount in supplies if own == slot)

    def _choose(self, number: int) -> None:
        """Enforce an option, or strike it out where it would break a further row."""
        option, further = self._problem.policies[number], self.further
        own = self._of_options[number]
        amounts, rows = further.option_coefficients[own], further.option_rows[own]
        if ((amounts > 0) & (amounts > self._limits[rows] + _TOLERANCE)).any():
            self._open[option.cluster][option.pool].remove(number)
            self._promise(option.cluster)
        else:
            self._enforce(number)

    def _enforce(self, number: int) -> None:
        option, further = self._problem.policies[number], self.further
        own = self._of_options[number]
        np.subtract.at(self._limits, further.option_rows[own], further.option_coefficients[own])
        for slot, amount in option.supplies:
            self._left[slot] += amount
            self._there[slot] = True
        self._chosen.append(number)
        del self._open[option.cluster][option.pool]
        self._promise(option.cluster)

    def _promise(self, cluster: int) -> None:
        """Note what pools that are not decided could supply at most."""
        self._more[self._slots[cluster]] = 0.0
        for numbers in self._open[cluster].values():
            most: dict[int, float] = {}
            for number in numbers:
                for slot, amount in self._problem.policies[number].supplies:
                    most[slot] = max(most.get(slot, 0.0), amount)
            for slot, amount in most.items():
                self._more[slot] += amount


def _entries(owners: Ints, count: int) -> list[Ints]:
    """Return, for every owner, the positions of its entries."""
    order = np.argsort(owners, kind="stable")
    return np.split(order, np.searchsorted(owners[order], np.arange(1, count))) if count else []
