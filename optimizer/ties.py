"""Which of several equally good decisions is taken.

More workloads placed; then the order of the request: workloads listed first take clusters listed
first, and policies listed first are preferred. Problems too large for a second solve take what the
solver finds first, which is the same every time.
"""

from optimizer.problem import Problem
from optimizer.solution import Choice, Decision, Variable

LARGEST_SAFE_COEFFICIENT = 1e6


def tie_weights(problem: Problem) -> dict[Variable, float] | None:
    """Return what a second solve maximises among decisions of equal value.

    None where the weights would grow beyond what a solver tells apart safely.
    """
    clusters = {name: rank for rank, name in enumerate(_clusters(problem))}
    workloads = {name: rank for rank, name in enumerate(problem.demands)}
    order = {
        place: (len(workloads) - workloads[place.workload])
        * (len(clusters) - clusters[place.cluster])
        for place in problem.values
    }
    ranks = _policy_ranks(problem)
    placed = 1 + len(workloads) * max(order.values(), default=0) + sum(ranks.values())
    if placed > LARGEST_SAFE_COEFFICIENT:
        return None
    weights: dict[Variable, float] = {choice: -float(rank) for choice, rank in ranks.items()}
    return weights | {place: float(placed + value) for place, value in order.items()}


def trimmed(decision: Decision) -> Decision:
    """Return the decision without the policies of clusters on which nothing runs."""
    used = {place.cluster for place in decision.places}
    choices = tuple(choice for choice in decision.choices if choice.cluster in used)
    return Decision(choices, decision.places)


def _clusters(problem: Problem) -> list[str]:
    return list(dict.fromkeys(choice.cluster for choice in problem.supplies))


def _policy_ranks(problem: Problem) -> dict[Choice, int]:
    seen: dict[str, int] = {}
    ranks = {}
    for choice in problem.supplies:
        ranks[choice] = seen.get(choice.cluster, 0)
        seen[choice.cluster] = ranks[choice] + 1
    return ranks
