"""The solver's own process: a pickled task on standard input, a pickled Solution on output.

Run by `optimizer.solve` as `python -P -m optimizer.worker`.
"""

import pickle
import sys
from dataclasses import dataclass

from optimizer.problem import Problem
from optimizer.settings import SolverName


@dataclass(frozen=True, slots=True)
class Task:
    """What to solve and how."""

    problem: Problem
    solver: SolverName
    time_limit_seconds: float


def main() -> None:
    """Solve the task on standard input."""
    from optimizer.milp import solve_here  # noqa: PLC0415 - the parent never loads PuLP

    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the parent process
    solution = solve_here(
        task.problem, solver=task.solver, time_limit_seconds=task.time_limit_seconds
    )
    pickle.dump(solution, answers)
    answers.flush()


if __name__ == "__main__":
    main()
