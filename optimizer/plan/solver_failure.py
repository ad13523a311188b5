"""A solver that failed: what happened, how good the plan is nevertheless, and what to do."""

from collections.abc import Iterator, Mapping

from optimizer.domain.issue import Issue
from optimizer.domain.solution import FailureCause, Solution

SOLVER_FAILED = "SolverFailed"
"""The type of the condition of a record, and the reason of the issue of its plan."""

_REPORT = "; if it recurs, try another --solver, and report the error of the log"

_AFTER_PLAN_AGAIN: Mapping[FailureCause, str] = {
    "NotStarted": "; if it recurs, restart the optimizer",
    "Killed": "; if it recurs, give the optimizer more memory, or plan fewer clusters or workloads"
    " at once",
    "MemoryLimit": " with a higher --memory-limit, or for fewer clusters or workloads at once",
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
