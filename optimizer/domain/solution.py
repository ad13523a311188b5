"""A decision, the solution that says how good it is known to be, and what a failed solver means."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from optimizer.domain.issue import Issue

Status = Literal["Optimal", "Feasible", "Infeasible", "NotSolved"]

STATUS_MEANING = (
    "Optimal: proven best. Feasible: the best found within the limits, see bound and gap."
    " Infeasible: no workload has a place. NotSolved: nothing found within the limits."
)


class PolicyEnforcement(NamedTuple):
    """A cluster enforces a policy."""

    cluster: str
    policy: str


class Assignment(NamedTuple):
    """A workload runs on a device of a cluster."""

    workload: str
    cluster: str
    device: str


Variable = PolicyEnforcement | Assignment


@dataclass(frozen=True, slots=True)
class Decision:
    """The policies enforced and the workloads assigned, in the problem's order."""

    policies: tuple[PolicyEnforcement, ...] = ()
    assignments: tuple[Assignment, ...] = ()


class Tier(NamedTuple):
    """How well a priority is served; the best decision, tier by tier, has at most `bound`."""

    priority: int
    value: float
    bound: float


class TierPrices(NamedTuple):
    """The Lagrange multipliers that prove the bound of a priority, each at least 0.

    `workloads`: by name; `rows`: by what a linking row says. A solve of a similar problem starts
    from them.
    """

    priority: int
    workloads: Mapping[str, float]
    rows: Mapping[str, float]


NodeRows = frozenset[tuple[str, str]]
"""Workloads and clusters, by name, of which the solver knows whether Pods find nodes there."""

FailureCause = Literal["NotStarted", "Killed", "MemoryLimit", "Crashed", "CallFailed"]
"""Why a process did not do its work. CallFailed: it did, but the solver it called did not."""


@dataclass(frozen=True, slots=True)
class ProcessFailure:
    """Why a process that solves or explains failed; `message` is a clause that says it."""

    cause: FailureCause
    message: str


@dataclass(frozen=True, slots=True)
class Solution:
    """A decision, and how good it is known to be.

    `bound`: no decision is worth more; with several priorities the sum of those of `tiers`, highest
    priority first. None where unknown. `seconds` is wall-clock time of building and solving.
    `failure`: why a better decision or bound may be missing, although there was time to find it.
    `prices`: of the priorities that have any. `node_rows`: those that a similar problem states too.
    """

    status: Status
    decision: Decision
    objective_value: float
    bound: float | None
    seconds: float
    solver: str
    tiers: tuple[Tier, ...] = ()
    failure: ProcessFailure | None = None
    prices: tuple[TierPrices, ...] = ()
    node_rows: NodeRows = frozenset()

    @property
    def gap(self) -> float | None:
        """The optimality gap, (bound - objective_value) / |objective_value|; None where unknown."""
        if self.bound is None:
            return None
        missing = max(0.0, self.bound - self.objective_value)
        if missing == 0:
            return 0.0
        return missing / abs(self.objective_value) if self.objective_value else None


TimeLeft = Callable[[], bool]
"""Returns False once the time for a computation is over."""


def unlimited() -> bool:
    """Return that there is time left, always."""
    return True


SOLVER_FAILED = "SolverFailed"
"""The type of the condition of a record, and the reason of the issue of its plan."""

_REPORT = "; if it recurs, try another solver, and report the error of the log"

_AFTER_PLAN_AGAIN: Mapping[FailureCause, str] = {
    "NotStarted": "; if it recurs, restart the optimizer",
    "Killed": "; if it recurs, give the optimizer more memory, or plan fewer clusters or workloads"
    " at once",
    "MemoryLimit": " with a higher memory limit, or for fewer clusters or workloads at once",
    "Crashed": _REPORT,
    "CallFailed": _REPORT,
}


def solver_issues(solution: Solution) -> Iterator[Issue]:
    """Yield the issue of a solution whose solver failed; none of another."""
    failure = solution.failure
    if failure is not None:
        yield Issue(
            reason="SolverFailed",
            message=f"the solver failed: {failure.message}; {_what_to_do(solution, failure.cause)}",
        )


def _what_to_do(solution: Solution, cause: FailureCause) -> str:
    """Return how good a solution is known to be, and what to do for a better one."""
    if solution.status == "Optimal":
        return "the plan is proven best nevertheless"
    if solution.status == "NotSolved":
        worth = "nothing is planned"
    elif solution.gap is None:
        worth = "how far the plan is below the best one is not known"
    else:
        worth = f"the best plan may be worth up to {solution.gap:.2%} more than this one"
    return f"{worth}; plan again{_AFTER_PLAN_AGAIN[cause]}"
