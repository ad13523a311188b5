"""HiGHS, which solves the integer program of a queue; it comes with the extra `optimizer`.

It runs in the thread that calls it, and lets other threads run meanwhile.
"""

import logging
import math
import time
from collections.abc import Sequence
from functools import partial

import highspy
import numpy as np

from dsf.hub.dispatch.queue_pass import Row, Solve

SECONDS = 5.0
"""How long the solves of one decision may take together; what is found by then counts."""
MOST_COLUMNS = 50_000
"""Integers of a program; before its first solution a larger one needs more than that time."""
GAP = 1e-3
"""The relative optimality gap at which a solve ends."""

log = logging.getLogger(__name__)


def solver(seconds: float = SECONDS) -> Solve:
    """Return what solves one program after the other, in so many seconds from now."""
    return partial(_solved, time.monotonic() + seconds)


def _solved(
    end: float, objective: Sequence[float], upper: Sequence[int], rows: Sequence[Row]
) -> tuple[list[float], float] | None:
    """Return the integers of the best solution, and a bound of the objective; None without one."""
    columns = len(objective)
    if columns > MOST_COLUMNS:
        log.warning("no plan", extra={"columns": columns, "most": MOST_COLUMNS})
        return None
    model = highspy.HighsLp()
    model.sense_ = highspy.ObjSense.kMaximize
    model.num_col_, model.num_row_ = columns, len(rows)
    model.col_cost_ = np.array(objective)
    model.col_lower_, model.col_upper_ = np.zeros(columns), np.array(upper)
    model.integrality_ = [highspy.HighsVarType.kInteger] * columns
    model.row_lower_, model.row_upper_ = np.full(len(rows), -math.inf), np.ones(len(rows))
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *map(len, rows)])
    model.a_matrix_.index_ = np.array([column for row in rows for column in row])
    model.a_matrix_.value_ = np.array([value for row in rows for value in row.values()])
    highs = highspy.Highs()
    left = max(0.0, end - time.monotonic())
    options = {"output_flag": False, "threads": 1, "time_limit": left, "mip_rel_gap": GAP}
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    highs.run()
    found = highs.getInfo()
    if not math.isfinite(found.objective_function_value + found.mip_dual_bound):
        log.warning("no plan", extra={"status": highs.getModelStatus().name})
        return None
    return list(highs.getSolution().col_value), found.mip_dual_bound
