"""A decision as a solution: its bounds, and a status that claims no more than they prove."""

from collections.abc import Sequence

from optimizer.domain.solution import Decision, Solution, Tier
from optimizer.model.decision_comparison import SAME_VALUE, trimmed
from optimizer.model.problem import Problem, objective, tier_values


def with_status(
    problem: Problem,
    decision: Decision | None,
    known_bounds: tuple[Sequence[float], Sequence[float]],
    seconds: float,
    solver: str,
) -> Solution:
    """Return a decision as a solution; Optimal only if every tier reaches its bound.

    `known_bounds`: the bounds proven for the first tiers, and the upper bound of every tier.
    """
    bounds, limits = known_bounds
    if decision is None or (not decision.assignments and len(bounds) < len(problem.tiers)):
        bound = min([sum(limits), *(bounds if len(problem.tiers) == 1 else [])])
        return Solution("NotSolved", Decision(), 0.0, bound, seconds, solver)
    decision = trimmed(problem, decision)
    value, values = objective(problem, decision), tier_values(problem, decision)
    # A solver that stopped early may return no bound, or an infinite one.
    known = [*map(min, bounds, limits), *limits[len(bounds) :]]
    tiers = tuple(
        Tier(priority, got, max(got, most))
        for priority, got, most in zip(problem.tiers, values, known, strict=True)
    )
    if all(tier.bound - tier.value <= SAME_VALUE for tier in tiers):
        return Solution("Optimal", decision, value, value, seconds, solver, tiers)
    bound = sum(tier.bound for tier in tiers)
    return Solution("Feasible", decision, value, bound, seconds, solver, tiers)
