"""How good a decision is where some candidates were not generated."""

from dataclasses import replace

from optimizer.solution import Solution


def widened(solution: Solution, left_out: float) -> Solution:
    """Return a solution whose bound holds over all layouts, and that claims no more than it can.

    From any decision one over the candidates is had by leaving out workloads, on each cluster
    worth at most what its candidates lack: so no decision is worth more than bound + `left_out`.
    """
    if not left_out:
        return solution
    tiers = max(1, len(solution.tiers))
    return replace(
        solution,
        status="Feasible" if solution.status == "Optimal" else solution.status,
        bound=None if solution.bound is None else solution.bound + left_out * tiers,
        tiers=tuple(item._replace(bound=item.bound + left_out) for item in solution.tiers),
    )
