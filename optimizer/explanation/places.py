"""For every place taken: what else there was, and what is lost without it."""

from collections.abc import Iterator, Sequence

import numpy as np

from optimizer.explanation.forced import outcome, without_places
from optimizer.explanation.ports import Resolve
from optimizer.explanation.results import Lost, PlaceReason, RunnerUp, Spot
from optimizer.explanation.shown import spot
from optimizer.problem import Problem
from optimizer.results import Placed
from optimizer.solution import Place, Solution


def places(
    problem: Problem, solution: Solution, placed: Sequence[Placed], resolve: Resolve
) -> Iterator[PlaceReason]:
    """Yield every place with its runner-up and margin, in the order of the plan."""
    for item, place in zip(placed, solution.decision.places, strict=True):
        margin, instead = _margin(problem, solution, place, resolve)
        yield PlaceReason(
            **item.model_dump(),
            runner_up=runner_up(problem, place),
            margin=margin,
            instead=instead,
        )


def runner_up(problem: Problem, place: Place) -> RunnerUp | None:
    """Return the best other place of a workload by score alone; None where no other is usable."""
    found = problem.indexes(place)
    if found is None:
        return None
    task, taken = found
    scores = problem.values[task].copy()
    staying = np.isin(problem.slot_cluster, np.array(problem.tasks[task].current, dtype=np.int64))
    scores[staying] -= problem.tasks[task].move_cost
    scores[taken] = np.nan
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    other = problem.place(task, best)
    return RunnerUp(cluster=other.cluster, device=other.device, score=float(scores[best]))


def _margin(
    problem: Problem, solution: Solution, place: Place, resolve: Resolve
) -> tuple[Lost | None, tuple[Spot, ...]]:
    if solution.status != "Optimal":
        return None, ()
    without = without_places(problem, [place])
    found = outcome(problem, solution.decision, without, resolve)
    others = (item for item in found.decision.places if item.workload == place.workload)
    return found.lost, tuple(map(spot, others))
