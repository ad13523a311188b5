"""Greedy decision: workload by workload, each where its value less a price of its amounts is best.

The price leaves room where other workloads are worth more per amount, after the ratio rule of G. B.
Dantzig, "Discrete-variable extremum problems", Operations Research 5 (1957).
"""

from collections.abc import Callable
from itertools import chain

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.allocation import EXACT, Allocation
from optimizer.model.decision_comparison import worth_more
from optimizer.model.objective import tier_values
from optimizer.model.parameters import largest_supplies
from optimizer.model.problem import Problem
from optimizer.model.rules import linking_rows, violations
from optimizer.solve.tuning import AMOUNT_PRICE


def greedy(problem: Problem, stop: Callable[[], bool]) -> Decision:
    """Return a decision that satisfies every rule; ends early with what it has when `stop` says so.

    The costs of policies are compared at the end only: if they are too high, the decision is empty.
    """
    state = _State(problem)
    needy = any(item.workload_affinity for item in problem.workloads)
    # In the second pass workloads with an affinity find what they need.
    for workload in np.tile(_order(problem), 2 if needy else 1).tolist():
        if stop():
            break
        state.assign(workload)
    found, nothing = state.allocation.decision(), Decision()
    worth, none = (tier_values(problem, decision) for decision in (found, nothing))
    return nothing if worth_more(none, worth) else found


def fill_remaining(problem: Problem, decision: Decision, stop: Callable[[], bool]) -> Decision:
    """Return the decision with further assignments that cost nothing, even those of value 0."""
    if len(decision.assignments) == sum(workload.replicas for workload in problem.workloads):
        return decision
    state = _State(problem)
    state.hold(decision)
    for workload in _order(problem).tolist():
        if stop():
            break
        state.assign(workload)
    found = state.allocation.decision()
    if len(found.assignments) == len(decision.assignments):
        return decision
    before, after = (tier_values(problem, item) for item in (decision, found))
    return decision if violations(problem, found) or worth_more(before, after) else found


def _order(problem: Problem) -> Ints:
    """Return the workloads by priority, then by best value per amount."""
    amounts = np.array([max(workload.amount, EXACT) for workload in problem.workloads])
    worth = np.fmax.reduce(problem.values, axis=1, initial=0.0) / amounts
    return np.lexsort((-worth, problem.workload_tier))


class _State:
    """An allocation, the pools without an enforced policy, and the most that they could supply."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.allocation = Allocation(problem, rows=linking_rows(problem))
        self._undecided: dict[int, dict[str, list[int]]] = {}
        for (cluster, pool), members in problem.pools.items():
            self._undecided.setdefault(cluster, {})[pool] = [*members]
        self._more = np.zeros(len(problem.resources))
        for cluster in self._undecided:
            self._promise(cluster)
        self._costs = self._prices()

    def hold(self, decision: Decision) -> None:
        """Begin with a decision that satisfies every rule."""
        policies, pairs = self._problem.numbered(decision)
        for policy in policies:
            self._enforce(policy)
        for pair in pairs:
            self.allocation.assign(*pair)

    def assign(self, workload: int) -> None:
        """Assign a workload to the best resources, one per replica, as far as there are any."""
        net, had = None, self.allocation.resources_of[workload]
        while len(had) < self._problem.workloads[workload].replicas:
            net = self._net(workload) if net is None else net
            resource = int(np.argmax(net))
            if net[resource] == -np.inf:
                return
            if self._take(workload, resource):
                net = None
            else:
                net[resource] = -np.inf

    def _prices(self) -> Floats:
        """Return the price of one unit of each resource, [resources].

        A unit is dear where its cluster can have few of them: AMOUNT_PRICE times the mean value of
        an amount, times the largest supply of the cluster over the resource's own.
        """
        problem = self._problem
        supply = self.allocation.residual + self._more
        top = np.zeros(len(problem.clusters))
        np.maximum.at(top, problem.resource_cluster, supply)
        share = top[problem.resource_cluster] / np.maximum(supply, EXACT)
        amounts = np.array([workload.amount for workload in problem.workloads])
        best = np.fmax.reduce(problem.values, axis=1, initial=0.0)
        unit = AMOUNT_PRICE * float(best.sum()) / max(float(amounts.sum()), EXACT)
        costs: Floats = np.where(supply > 0, unit * share, 0.0)
        return costs

    def _net(self, workload: int) -> Floats:
        """Return each resource's value to a workload less its price, -inf where it can't run."""
        problem, amount = self._problem, self._problem.workloads[workload].amount
        values = problem.values[workload]
        room = self.allocation.residual + self._more
        fits = (
            (room >= amount - EXACT) & (self.allocation.exists | (self._more > 0)) & (values >= 0)
        )
        net = np.where(fits, values - amount * self._costs, -np.inf)
        for resource in self.allocation.resources_of[workload]:
            net[problem.resources_on[problem.resources[resource].cluster]] = -np.inf
        net[self.allocation.violating(workload)] = -np.inf
        return net

    def _take(self, workload: int, resource: int) -> bool:
        """Assign a workload, with the policies that this needs; tell whether it was possible."""
        cluster = self._problem.resources[resource].cluster
        needs = self._problem.demand_of(workload, resource)
        if not all(self._ensure(cluster, need, much) for need, much in needs):
            return False
        if not self.allocation.allows_assignment(workload, resource):
            return False  # the new policies used up a row
        self.allocation.assign(workload, resource)
        return True

    def _ensure(self, cluster: int, resource: int, amount: float) -> bool:
        """Enforce policies until a resource exists and has this amount left."""
        pools, policies = self._undecided.get(cluster, {}), self._problem.policies
        found = self.allocation
        while not found.exists[resource] or found.residual[resource] < amount - EXACT:
            best = max(
                (
                    (
                        sum(much for at, much in policies[number].supplies if at == resource),
                        policies[number].current,
                        -number,
                    )
                    for numbers in pools.values()
                    for number in numbers
                ),
                default=(0.0, False, 0),
            )
            if best[0] <= 0:
                return False
            self._choose(-best[2])
        return True

    def _choose(self, number: int) -> None:
        """Enforce a policy, or drop it if it would violate a row."""
        if self.allocation.allows_policy(number):
            self._enforce(number)
            return
        policy = self._problem.policies[number]
        self._undecided[policy.cluster][policy.pool].remove(number)
        self._promise(policy.cluster)

    def _enforce(self, number: int) -> None:
        policy = self._problem.policies[number]
        self.allocation.enforce(number)
        del self._undecided[policy.cluster][policy.pool]
        self._promise(policy.cluster)

    def _promise(self, cluster: int) -> None:
        """Update the most that the undecided pools of a cluster could supply."""
        self._more[self._problem.resources_on[cluster]] = 0.0
        every = chain.from_iterable(self._undecided[cluster].values())
        for resource, amount in largest_supplies(self._problem.policies[at] for at in every):
            self._more[resource] += amount
