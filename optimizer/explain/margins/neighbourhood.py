"""Good decisions without one assignment, from problems in which little may change.

A neighbourhood of a decision fixes most of it and solves the rest to optimality (large
neighbourhood search; P. Shaw, CP 1998).
"""

import numpy as np

from optimizer.domain.arrays import Bools
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.explain.tuning import MARGIN_RESOURCES
from optimizer.model.problem import Problem


class Neighbourhood:
    """Decisions in which the policies stay, and most workloads too."""

    def __init__(self, problem: Problem, decision: Decision) -> None:
        enforced = [problem.policy_index[item] for item in decision.policies]
        exists = np.array(problem.base > 0)
        for policy in enforced:
            exists[[resource for resource, _ in problem.policies[policy].supplies]] = True
        taken = problem.indexes_of(decision.assignments)
        self._problem = problem
        self._policies = np.isin(np.arange(len(problem.policies)), enforced)
        self._usable = ~np.isnan(problem.values) & exists
        self._workload = np.array([workload for workload, _ in taken], dtype=np.int64)
        self._resource = np.array([resource for _, resource in taken], dtype=np.int64)
        self._idle = np.setdiff1d(np.arange(len(problem.workloads)), self._workload)

    def without(self, assignment: Assignment, solve: ProblemSolver) -> Solution:
        """Return the best solution without an assignment in the neighbourhood."""
        found = self._problem.indexes(assignment)
        if found is None:
            raise KeyError(assignment)
        return solve(self._problem.restricted(self._free(*found), self._policies))

    def _free(self, workload: int, resource: int) -> Bools:
        """Return the candidate assignments [workloads, resources] that may be decided again.

        These are the present ones, and on the workload's best resources those of all workloads that
        run there or nowhere.
        """
        values = np.where(self._usable[workload], self._problem.values[workload], -np.inf)
        best = np.argsort(-values, kind="stable")[:MARGIN_RESOURCES]
        near = np.union1d(best[np.isfinite(values[best])], [resource])
        free = np.zeros_like(self._usable)
        moving = self._workload[np.isin(self._resource, near)]
        movers = np.union1d(np.concatenate([moving, self._idle]), [workload])
        corner = np.ix_(movers, near)
        free[corner] = self._usable[corner]
        free[self._workload, self._resource] = True
        free[workload, resource] = False
        return free
