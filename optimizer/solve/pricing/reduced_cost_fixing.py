"""Reduced-cost fixing: what no better decision uses."""

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Flags, Prices
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult

_TOLERANCE = 1e-6


def unfixed_variables(
    blocks: BlockProblem, prices: Prices, answers: PricingResult, slack: float
) -> tuple[Flags, Flags]:
    """Return the places and modes that a decision may use which loses at most `slack`.

    A site that is made to hold a task loses at least what its best such mode lacks; the rest of
    the slot is filled as if the task were still to be had.
    """
    profits = blocks.values - prices.tasks[:, None]
    rows = blocks.rows
    charged = rows.place_coefficients * prices.rows[rows.place_rows]
    np.subtract.at(profits, (rows.place_tasks, rows.place_slots), charged)
    lost = answers.worth[blocks.mode_sites] - answers.mode_profits
    modes: Flags = lost <= slack + _TOLERANCE
    places = np.zeros(profits.shape, np.bool_)
    for mode, slot, supply in zip(
        blocks.supply_modes.tolist(),
        blocks.supply_slots.tolist(),
        blocks.supply_amounts.tolist(),
        strict=True,
    ):
        if not modes[mode]:
            continue
        best = answers.knapsacks.best[slot]
        fits = blocks.sizes <= supply
        left = np.where(fits, supply - blocks.sizes, 0)
        short = lost[mode] + best[supply] - best[left] - profits[:, slot]
        places[:, slot] |= fits & (short <= slack + _TOLERANCE)
    return places, modes
