"""Reduced-cost fixing: the variables that no better decision uses.

With a bound U at some prices and a decision of value V, a decision that is worth more than V loses
less than U - V against the best columns. A variable that alone loses more is fixed at 0.
"""

import numpy as np

from optimizer.domain.arrays import Bools
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult, assignment_profits
from optimizer.solve.tuning import VALUE_TOLERANCE


def unfixed_variables(
    blocks: BlockProblem, prices: Prices, pricing: PricingResult, slack: float
) -> tuple[Bools, Bools]:
    """Return the assignments [workloads, resources] and modes that lose at most `slack`.

    A site that has to take a workload w on resource r in a mode loses at least best_r(c) - best_r(c
    - size_w) - profit_wr more than the mode does, where c is its supply and best_r the knapsack
    table.
    """
    profits = assignment_profits(blocks, prices)
    lost = pricing.site_profits[blocks.mode_sites] - pricing.mode_profits
    modes: Bools = lost <= slack + VALUE_TOLERANCE
    assignments = np.zeros(profits.shape, np.bool_)
    for mode, resource, supply in zip(
        blocks.supply_modes.tolist(),
        blocks.supply_resources.tolist(),
        blocks.supply_amounts.tolist(),
        strict=True,
    ):
        if not modes[mode]:
            continue
        best = pricing.knapsacks.best[resource]
        fits = blocks.sizes <= supply
        left = np.where(fits, supply - blocks.sizes, 0)
        short = lost[mode] + best[supply] - best[left] - profits[:, resource]
        assignments[:, resource] |= fits & (short <= slack + VALUE_TOLERANCE)
    return assignments, modes
