"""Greedy decision: workload by workload, each where its value less a price of its amounts is best.

The price leaves room where other workloads are worth more per amount, after the ratio rule of G. B.
Dantzig, "Discrete-variable extremum problems", Operations Research 5 (1957).
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.allocation import Allocation
from optimizer.model.decision_order import worth_more
from optimizer.model.problem import Problem, tier_values
from optimizer.model.rules import violations
from optimizer.solve.blocks.block_problem import entries_by_owner
from optimizer.solve.blocks.linking_constraints import linking_constraints
from optimizer.solve.tuning import AMOUNT_PRICE, AMOUNT_TOLERANCE


def greedy(problem: Problem, stop: Callable[[], bool]) -> Decision:
    """Return a decision that satisfies every rule; ends early with what it has when `stop` says so.

    The costs of policies are compared at the end only: if they are too high, the decision is empty.
    """
    state = _State(problem)
    # In the second pass workloads with an affinity find what they need.
    for workload in np.tile(_order(problem), 2 if state.linking.limits else 1).tolist():
        if stop():
            break
        state.assign(workload)
    found, nothing = state.decision(), Decision()
    worth, none = (tier_values(problem, decision) for decision in (found, nothing))
    return nothing if worth_more(none, worth) else found


def fill_remaining(problem: Problem, decision: Decision, stop: Callable[[], bool]) -> Decision:
    """Return the decision with further assignments that cost nothing, even those of value 0."""
    state = _State(problem)
    state.hold(decision)
    for workload in _order(problem).tolist():
        if stop():
            break
        state.assign(workload)
    found = state.decision()
    before, after = (tier_values(problem, item) for item in (decision, found))
    return decision if violations(problem, found) or worth_more(before, after) else found


def _order(problem: Problem) -> Ints:
    """Return the workloads by priority, then by best value per amount."""
    amounts = np.array([max(workload.amount, AMOUNT_TOLERANCE) for workload in problem.workloads])
    worth = np.fmax.reduce(problem.values, axis=1, initial=0.0) / amounts
    return np.lexsort((-worth, problem.workload_tier))


class _State:
    """A partial decision, and what is left of resources, linking rows and assignments."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.linking = linking_constraints(problem, frozenset())
        self._of_workloads = entries_by_owner(
            self.linking.assignment_workloads, len(problem.workloads)
        )
        self._of_policies = entries_by_owner(self.linking.policy_numbers, len(problem.policies))
        self._limits = np.array(self.linking.limits, np.float64)
        self._allocation = Allocation(problem)
        self._open: dict[int, dict[str, list[int]]] = {}
        for number, policy in enumerate(problem.policies):
            self._open.setdefault(policy.cluster, {}).setdefault(policy.pool, []).append(number)
        self._resources = entries_by_owner(problem.resource_cluster, len(problem.clusters))
        self._more = np.zeros(len(problem.resources))
        for cluster in self._open:
            self._promise(cluster)
        self._costs = self._prices()

    def decision(self) -> Decision:
        """Return the decision; it includes policies that supply nothing that is used."""
        return self._allocation.decision()

    def hold(self, decision: Decision) -> None:
        """Begin with a decision that satisfies every rule."""
        problem, linking = self._problem, self.linking
        for choice in decision.policies:
            self._enforce(problem.policy_index[choice])
        for workload, resource in filter(None, map(problem.indexes, decision.assignments)):
            own = self._of_workloads[workload]
            own = own[linking.assignment_resources[own] == resource]
            np.subtract.at(
                self._limits, linking.assignment_rows[own], linking.assignment_coefficients[own]
            )
            self._allocation.assign(workload, resource)

    def assign(self, workload: int) -> None:
        """Assign a workload to the best resources, one per replica, as far as there are any."""
        net, had = None, self._allocation.resources_of[workload]
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
        supply = self._allocation.residual + self._more
        top = np.zeros(len(problem.clusters))
        np.maximum.at(top, problem.resource_cluster, supply)
        share = top[problem.resource_cluster] / np.maximum(supply, AMOUNT_TOLERANCE)
        amounts = np.array([workload.amount for workload in problem.workloads])
        best = np.fmax.reduce(problem.values, axis=1, initial=0.0)
        unit = AMOUNT_PRICE * float(best.sum()) / max(float(amounts.sum()), AMOUNT_TOLERANCE)
        costs: Floats = np.where(supply > 0, unit * share, 0.0)
        return costs

    def _net(self, workload: int) -> Floats:
        """Return each resource's value to a workload less its price, -inf where it can't run."""
        problem, amount = self._problem, self._problem.workloads[workload].amount
        values = problem.values[workload]
        room = self._allocation.residual + self._more
        fits = (
            (room >= amount - AMOUNT_TOLERANCE)
            & (self._allocation.exists | (self._more > 0))
            & (values >= 0)
        )
        net = np.where(fits, values - amount * self._costs, -np.inf)
        for resource in self._allocation.resources_of[workload]:
            net[self._resources[problem.resources[resource].cluster]] = -np.inf
        self._block(workload, net)
        return net

    def _block(self, workload: int, net: Floats) -> None:
        """Exclude the resources on which the workload would violate a linking row."""
        own, linking = self._of_workloads[workload], self.linking
        if len(own):
            after = linking.assignment_coefficients[own]
            broken = after > self._limits[linking.assignment_rows[own]] + AMOUNT_TOLERANCE
            net[linking.assignment_resources[own[broken & (after > 0)]]] = -np.inf

    def _take(self, workload: int, resource: int) -> bool:
        """Assign a workload, with the policies that this needs; tell whether it was possible."""
        cluster = self._problem.resources[resource].cluster
        needs = self._allocation.demand(workload, resource)
        if not all(self._ensure(cluster, need, much) for need, much in needs):
            return False
        own, linking = self._of_workloads[workload], self.linking
        own = own[linking.assignment_resources[own] == resource]
        after = linking.assignment_coefficients[own]
        rows = linking.assignment_rows[own]
        if ((after > 0) & (after > self._limits[rows] + AMOUNT_TOLERANCE)).any():
            return False  # the new policies used up the row
        np.subtract.at(self._limits, rows, after)
        self._allocation.assign(workload, resource)
        return True

    def _ensure(self, cluster: int, resource: int, amount: float) -> bool:
        """Enforce policies until a resource exists and has this amount left."""
        pools, found = self._open.get(cluster, {}), self._allocation
        while not found.exists[resource] or found.residual[resource] < amount - AMOUNT_TOLERANCE:
            best = max(
                (
                    (
                        self._supplied(number, resource),
                        self._problem.policies[number].current,
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

    def _supplied(self, policy: int, resource: int) -> float:
        supplies = self._problem.policies[policy].supplies
        return sum(amount for own, amount in supplies if own == resource)

    def _choose(self, number: int) -> None:
        """Enforce a policy, or drop it if it would violate a linking row."""
        policy, linking = self._problem.policies[number], self.linking
        own = self._of_policies[number]
        amounts, rows = linking.policy_coefficients[own], linking.policy_rows[own]
        if ((amounts > 0) & (amounts > self._limits[rows] + AMOUNT_TOLERANCE)).any():
            self._open[policy.cluster][policy.pool].remove(number)
            self._promise(policy.cluster)
        else:
            self._enforce(number)

    def _enforce(self, number: int) -> None:
        policy, linking = self._problem.policies[number], self.linking
        own = self._of_policies[number]
        np.subtract.at(self._limits, linking.policy_rows[own], linking.policy_coefficients[own])
        self._allocation.enforce(number)
        del self._open[policy.cluster][policy.pool]
        self._promise(policy.cluster)

    def _promise(self, cluster: int) -> None:
        """Update the most that the undecided pools of a cluster could supply."""
        self._more[self._resources[cluster]] = 0.0
        for numbers in self._open[cluster].values():
            most: dict[int, float] = {}
            for number in numbers:
                for resource, amount in self._problem.policies[number].supplies:
                    most[resource] = max(most.get(resource, 0.0), amount)
            for resource, amount in most.items():
                self._more[resource] += amount
