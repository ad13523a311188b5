"""What is to be explained."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from optimizer.candidates.further_layouts import FurtherLayouts, further_layouts
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.model.problem import Problem
from optimizer.snapshot.fleet_snapshot import FleetSnapshot
from optimizer.snapshot.requested_gpus import mig_rules
from optimizer.wire.explanation import WhyNotQuestion
from optimizer.wire.request import OptimizeRequest


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A solution of a problem, and what is asked about it.

    `everything`: all that does not need a question. `pareto`: names of scores.
    `find_layouts` returns the layouts that GPUs could have besides those of the candidates.
    """

    fleet: Fleet
    problem: Problem
    solution: Solution
    everything: bool = True
    why_not: tuple[WhyNotQuestion, ...] = ()
    pareto: tuple[str, ...] = ()
    find_layouts: Callable[[], FurtherLayouts] = dict


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
        request.why_not,
        request.pareto,
        partial(further_layouts, fleet, read.pools, mig_rules(request), read.enforced),
    )
