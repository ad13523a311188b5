"""What is to be explained."""

from dataclasses import dataclass

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.model.problem import Problem
from optimizer.wire.explanation_request import WhyNotQuestion
from optimizer.wire.request import OptimizeRequest


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A solution of a problem, and what is asked about it.

    `everything`: all that does not need a question. `pareto`: names of scores.
    """

    fleet: Fleet
    problem: Problem
    solution: Solution
    everything: bool = True
    why_not: tuple[WhyNotQuestion, ...] = ()
    pareto: tuple[str, ...] = ()


def case_of(request: OptimizeRequest, fleet: Fleet, problem: Problem, solution: Solution) -> Case:
    """Return what a request asks to be explained."""
    return Case(fleet, problem, solution, request.explain, request.why_not, request.pareto)
