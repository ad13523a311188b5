"""A partial decision, and what every resource and limit has left: the state of constructive search.

How to adopt it: build `Allocation(problem)` or `Allocation(problem, decision)`; ask `fits` (all
rules) or `has_capacity` (resources alone, cheaper); change it by `enforce`, `release`, `assign` and
`unassign`, each of which costs time in proportion to what it touches; read `residual` as an array
for vectorised choices; end with `decision()`. The changes themselves check nothing, so that a
search may pass through infeasible states: check the result with `rules.violations`.

For resource r, with x_p = 1 where policy p is enforced and y_wr = 1 where workload w runs on r:

    residual_r = base_r + sum_p supply_pr x_p - sum_w demand_wr y_wr
"""

from collections import Counter
from collections.abc import Hashable, Iterator

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem

EXACT = 1e-9
"""Relative: sums of amounts that differ by less differ through rounding alone."""


class Allocation:
    """Enforced policies, assignments, and the residual of each resource and limit.

    `residual` [resources]; `limit_residual` [limits]; `policies`: the numbers of the enforced ones;
    `resources_of` [workloads] and `workloads_on` [resources]: both directions of the assignments.
    """

    def __init__(self, problem: Problem, decision: Decision | None = None) -> None:
        self.problem = problem
        self.residual: Floats = problem.base.copy()
        self.limit_residual: Floats = np.array([item.most for item in problem.limits])
        self.policies: set[int] = set()
        self.resources_of: list[list[int]] = [[] for _ in problem.workloads]
        self.workloads_on: list[list[int]] = [[] for _ in problem.resources]
        self._sources: Ints = (problem.base > 0).astype(np.int64)
        self._pools: Counter[tuple[int, str]] = Counter()
        self._spread: Counter[Hashable] = Counter()
        self._running: list[Counter[str]] = [Counter() for _ in problem.clusters]
        self._kept_away: list[Counter[str]] = [Counter() for _ in problem.clusters]
        for policy in decision.policies if decision else ():
            self.enforce(problem.policy_index[policy])
        for pair in map(problem.indexes, decision.assignments if decision else ()):
            if pair is not None:
                self.assign(*pair)

    @property
    def exists(self) -> Bools:
        """Whether each resource has a base or is supplied by an enforced policy."""
        return self._sources > 0

    def enforce(self, policy: int) -> None:
        """Enforce a policy: its resources gain what it supplies."""
        self._change_policy(policy, 1)
        self.policies.add(policy)

    def release(self, policy: int) -> None:
        """Stop enforcing a policy."""
        self._change_policy(policy, -1)
        self.policies.remove(policy)

    def assign(self, workload: int, resource: int) -> None:
        """Run a workload on a resource."""
        self._change_assignment(workload, resource, 1)
        self.resources_of[workload].append(resource)
        self.workloads_on[resource].append(workload)

    def unassign(self, workload: int, resource: int) -> None:
        """Stop a workload on a resource."""
        self._change_assignment(workload, resource, -1)
        self.resources_of[workload].remove(resource)
        self.workloads_on[resource].remove(workload)

    def demand(self, workload: int, resource: int) -> list[tuple[int, float]]:
        """Return what an assignment takes, by resource: its amount and the extra kinds."""
        wanted, index = self.problem.workloads[workload], self.problem.resource_index
        cluster = self.problem.resources[resource].cluster
        further = (
            (index[ClusterResource(cluster, kind, NO_DEVICE)], amount)
            for kind, amount in wanted.requests
        )
        return [(resource, wanted.amount), *further]

    def has_capacity(self, workload: int, resource: int) -> bool:
        """Tell whether the resource exists and every resource that is taken has enough left."""
        return bool(self._sources[resource] > 0) and all(
            _at_most(amount, self.residual[at]) for at, amount in self.demand(workload, resource)
        )

    def fits(self, workload: int, resource: int) -> bool:
        """Tell whether one more assignment keeps every rule."""
        return (
            not np.isnan(self.problem.values[workload, resource])
            and len(self.resources_of[workload]) < self.problem.workloads[workload].replicas
            and self.has_capacity(workload, resource)
            and self._keeps_company(workload, self.problem.resources[resource].cluster)
            and self._keeps_limits(workload, resource)
        )

    def can_enforce(self, policy: int) -> bool:
        """Tell whether one more policy keeps every rule: its pool has none, and limits allow it."""
        found = self.problem.policies[policy]
        uses = (item.policies[policy] for item in self.problem.limits)
        return not self._pools[found.cluster, found.pool] and self._within_limits(uses)

    def decision(self) -> Decision:
        """Return the decision, in the problem's order."""
        pairs = (
            (workload, resource)
            for workload, own in enumerate(self.resources_of)
            for resource in sorted(own)
        )
        return Decision(
            tuple(self.problem.enforcement(policy) for policy in sorted(self.policies)),
            tuple(self.problem.assignment(*pair) for pair in pairs),
        )

    def _change_policy(self, policy: int, sign: int) -> None:
        found = self.problem.policies[policy]
        for resource, amount in found.supplies:
            self.residual[resource] += sign * amount
            self._sources[resource] += sign
        self._pools[found.cluster, found.pool] += sign
        for number, item in enumerate(self.problem.limits):
            self.limit_residual[number] -= sign * item.policies[policy]

    def _change_assignment(self, workload: int, resource: int, sign: int) -> None:
        for at, amount in self.demand(workload, resource):
            self.residual[at] -= sign * amount
        for number, used in enumerate(self._limit_use(workload, resource)):
            self.limit_residual[number] -= sign * used
        wanted, cluster = self.problem.workloads[workload], self.problem.resources[resource].cluster
        for _, group in self._spread_groups(workload, cluster):
            self._spread[group] += sign
        self._running[cluster][wanted.name] += sign
        for name in wanted.workload_anti_affinity:
            self._kept_away[cluster][name] += sign

    def _limit_use(self, workload: int, resource: int) -> Iterator[float]:
        for item in self.problem.limits:
            own = 0.0 if item.assignments is None else float(item.assignments[workload, resource])
            yield (float(item.workloads[workload]) + own) if item.counted[resource] else 0.0

    def _within_limits(self, uses: Iterator[float]) -> bool:
        pairs = zip(uses, self.limit_residual.tolist(), strict=True)
        return all(_at_most(used, left) for used, left in pairs)

    def _spread_groups(self, workload: int, cluster: int) -> Iterator[tuple[int, Hashable]]:
        """Yield, for each spread of a workload, its limit and what is counted together."""
        wanted = self.problem.workloads[workload]
        for item in wanted.spread:
            value = self.problem.labels[item.key][cluster]
            yield item.most, (item, "" if item.group else wanted.name, value)

    def _keeps_limits(self, workload: int, resource: int) -> bool:
        cluster = self.problem.resources[resource].cluster
        groups = self._spread_groups(workload, cluster)
        return all(self._spread[group] < most for most, group in groups) and self._within_limits(
            self._limit_use(workload, resource)
        )

    def _keeps_company(self, workload: int, cluster: int) -> bool:
        """Tell whether a cluster lacks the workload, and has what its affinities require."""
        wanted, running = self.problem.workloads[workload], self._running[cluster]
        if running[wanted.name]:
            return False
        if any(running[name] for name in wanted.workload_anti_affinity if name != wanted.name):
            return False
        if self._kept_away[cluster][wanted.name]:
            return False
        return all(any(running[name] for name in names) for names in wanted.workload_affinity)


def _at_most(amount: float, residual: float) -> bool:
    return bool(amount <= residual + EXACT * max(1.0, amount))
