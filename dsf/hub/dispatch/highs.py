"""HiGHS, which solves the integer program of a queue; it comes with the extra `optimizer`.

It runs in the thread that calls it, and lets other threads run meanwhile.
"""

import logging
import math
from collections.abc import Sequence

import highspy
import numpy as np

from dsf.hub.dispatch.assignment import Row

SECONDS = 5.0
"""How long one solve may take; what is found by then counts."""
GAP = 1e-3
"""The relative optimality gap at which a solve ends."""

log = logging.getLogger(__name__)


def solved(
    objective: Sequence[float], upper: Sequence[int], rows: Sequence[Row]
) -> tuple[list[float], float] | None:
    """Return the integers of the best solution, and a bound of the objective; None without one."""
    columns = len(objective)
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
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "time_limit": SECONDS, "mip_rel_gap": GAP}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    found = solver.getInfo()
    if not math.isfinite(found.objective_function_value + found.mip_dual_bound):
        log.warning("no plan", extra={"status": solver.getModelStatus().name})
        return None
    return list(solver.getSolution().col_value), found.mip_dual_bound
