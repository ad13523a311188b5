"""Widens the bounds of a solution where some layouts have no candidate."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from optimizer.candidates.lagrangian_bound import CLOSE
from optimizer.candidates.layout_relaxation import value_bounds
from optimizer.domain.fleet import Fleet
from optimizer.domain.gpu_layout import OmittedLayouts
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Solution, Tier
from optimizer.domain.status import Status

_LESS: Mapping[Status, Status] = {"Optimal": "Feasible", "Infeasible": "NotSolved"}
"""The status that is still proven where omitted layouts may be worth more."""


def bounded_over_all_layouts(fleet: Fleet, solution: Solution) -> Solution:
    """Return the solution with bounds and a status that hold over all layouts."""
    if not fleet.omitted_layouts or solution.bound is None:
        return solution
    values = {tier.priority: tier.value for tier in solution.tiers}
    return with_wider_bounds(solution, fleet.omitted_layouts, value_bounds(fleet, values))


def with_wider_bounds(
    solution: Solution, omitted: Iterable[OmittedLayouts], most: Mapping[int, float]
) -> Solution:
    """Return the solution with bounds over all layouts; `most`: an upper bound by priority.

    The highest priority has a second bound. Every feasible decision becomes feasible over the
    candidates after removing some workloads, which are worth at most the sum of the pools' bounds.
    Lower priorities have no such bound, because the smaller decision may be worse in the highest
    priority, for whose optimum alone their bounds hold. It does not hold either where the
    candidates leave a priority without assignments: costs then count in another tier.
    """
    known = {tier.priority: tier for tier in solution.tiers}
    tiers = [known.get(priority, Tier(priority, 0.0, 0.0)) for priority in sorted(most)[::-1]]
    bounds = [most[tier.priority] for tier in tiers]
    if tiers and len(known) == len(tiers):
        bounds[0] = min(bounds[0], tiers[0].bound + sum(item.bound for item in omitted))
    made = tuple(map(_widened, tiers, bounds))
    bound = sum(tier.bound for tier in made)
    less = _LESS if bound > (solution.bound or 0.0) else {}
    status = less.get(solution.status, solution.status)
    return replace(solution, status=status, bound=bound, tiers=made)


def _widened(tier: Tier, bound: float) -> Tier:
    """Return a tier with another bound, if it differs by more than solvers' tolerances."""
    alike = abs(bound - tier.bound) <= CLOSE * max(1.0, abs(tier.bound))
    return tier if alike else tier._replace(bound=max(tier.value, bound))


def omitted_layout_issues(omitted: Iterable[OmittedLayouts], more: float) -> Iterator[Issue]:
    """Yield an issue for each pool with omitted layouts; `more`: the most that all can be worth."""
    for item in omitted if more > 0 else ():
        yield Issue(
            reason="FewerLayouts",
            message=f"cluster {item.cluster}: the {item.kept} generated candidates leave out"
            f" layouts of its GPUs that can be worth up to {min(more, item.bound):g} more;"
            " raise mig.maxCandidates",
            cluster=item.cluster,
        )
