"""Which of several equally good decisions is taken.

More workloads placed; then what runs now stays; then the order of the request: workloads listed
first take clusters listed first, and policies listed first are preferred. Problems too large for a
second solve take what the solver finds first, which is the same every time, and bring back what can
be at no loss (`engine.staying`).
"""

import numpy as np

from optimizer.domain.solution import Choice, Decision, Place
from optimizer.model.problem import ANY, Floats, Problem, Slot

LARGEST_SAFE_COEFFICIENT = 1e6


def tie_weights(problem: Problem) -> Floats | None:
    """Return what a second solve maximises among decisions of equal value, by variable.

    None where the weights would grow beyond what a solver tells apart safely.
    """
    places, tasks, clusters = problem.places, len(problem.tasks), len(problem.clusters)
    order = (tasks - places.task) * (clusters - places.cluster)
    ranks = _policy_ranks(problem)
    stays, enforced = _standing(problem)
    rest = 1.0 + tasks * float(order.max(initial=0)) + float(ranks.sum())
    kept = rest if stays.any() or enforced.any() else 0.0
    placed = rest + kept * float(stays.sum() + enforced.sum())
    if placed > LARGEST_SAFE_COEFFICIENT:
        return None
    return np.concatenate([kept * enforced - ranks, placed + kept * stays + order])


def trimmed(problem: Problem, decision: Decision) -> Decision:
    """Return the decision without the policies that supply nothing of what runs."""
    used = {slot for place in decision.places for slot in _slots(problem, place)}

    def needed(choice: Choice) -> bool:
        supplies = problem.options[problem.option_index[choice]].supplies
        return any(slot in used for slot, _ in supplies)

    return Decision(tuple(filter(needed, decision.choices)), decision.places)


def _slots(problem: Problem, place: Place) -> list[int]:
    cluster = problem.cluster_index[place.cluster]
    task = problem.tasks[problem.task_index[place.workload]]
    wanted = [Slot(cluster, task.kind, place.device)]
    wanted += [Slot(cluster, kind, ANY) for kind, _ in task.extras]
    return [problem.slot_index[slot] for slot in wanted]


def _standing(problem: Problem) -> tuple[Floats, Floats]:
    """Return 1 for each place taken now and for each policy enforced now that a place needs."""
    pairs = zip(problem.places.task.tolist(), problem.places.cluster.tolist(), strict=True)
    stays = np.fromiter(
        (cluster in problem.tasks[task].current for task, cluster in pairs), np.float64
    )
    enforced = np.array([option.current for option in problem.options], np.float64)
    return stays, enforced


def _policy_ranks(problem: Problem) -> Floats:
    seen: dict[int, int] = {}
    ranks = np.zeros(len(problem.options))
    for index, option in enumerate(problem.options):
        ranks[index] = seen.get(option.cluster, 0)
        seen[option.cluster] = int(ranks[index]) + 1
    return ranks
