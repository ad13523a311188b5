"""What is to be explained, and what that needs from outside: solvers with a time budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from optimizer.candidates.further_layouts import FurtherLayouts, further_layouts
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.model.problem import Problem
from optimizer.model.rules import Row
from optimizer.snapshot.fleet_snapshot import FleetSnapshot
from optimizer.snapshot.requested_gpus import mig_rules
from optimizer.wire.explanation import Explanation, WhyNotQuestion
from optimizer.wire.request import OptimizeRequest

if TYPE_CHECKING:
    from optimizer.solve.solver_adapters import SolverResult


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A solution of a problem, and what is asked about it.

    `everything`: all that does not need a question. `workloads`: those that are explained without
    the rest. `pareto`: names of scores.
    `find_layouts` returns the layouts that GPUs could have besides those of the candidates.
    """

    fleet: Fleet
    problem: Problem
    solution: Solution
    everything: bool = True
    workloads: tuple[str, ...] = ()
    why_not: tuple[WhyNotQuestion, ...] = ()
    pareto: tuple[str, ...] = ()
    find_layouts: Callable[[], FurtherLayouts] = dict

    def is_about(self, workload: str) -> bool:
        """Return whether it is asked why a workload is where it is, or has no place."""
        return self.everything or workload in self.workloads


def case_of(
    request: OptimizeRequest,
    fleet: Fleet,
    problem: Problem,
    solution: Solution,
    read: FleetSnapshot,
) -> Case:
    """Return what a request asks to be explained."""
    return Case(
        fleet,
        problem,
        solution,
        request.explain,
        request.explain_workloads,
        request.why_not,
        request.pareto,
        partial(further_layouts, fleet, read.pools, mig_rules(request), read.enforced),
    )


class BudgetExceeded(Exception):
    """The time for explanations is over; raised by solvers, caught where a part begins."""


ProblemSolver = Callable[[Problem], Solution]
"""Solves a problem; raises BudgetExceeded."""

LinearSolver = Callable[[Floats, Sequence[Row], bool], "SolverResult"]
"""Maximises weights @ x under rows; x is 0 or 1, or in [0, 1] where the last argument is true.

Raises BudgetExceeded.
"""

ReportProgress = Callable[[Explanation], None]
"""Called repeatedly with the partial explanation found so far."""


def report_nothing(_: Explanation) -> None:
    """Ignore progress."""
