"""The status of a solution, and what each status says about it."""

from typing import Literal

Status = Literal["Optimal", "Feasible", "Infeasible", "NotSolved"]

STATUS_MEANING = (
    "Optimal: proven best. Feasible: the best found within the limits, see bound and gap."
    " Infeasible: no workload has a place. NotSolved: nothing found within the limits."
)
